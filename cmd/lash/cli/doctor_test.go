package cli

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/diagnosis"
	"lashd/rpc/socket"
	"lashd/test/skip"
	"lashd/test/wait"
)

// stop stops the daemon as a user would, so that the database is closed properly.
func (p *place) stop() {
	p.t.Helper()
	pid := p.holder()
	p.want(0, "{}", "", "call", "shutdown", `{"daemon":true}`)
	wait.Until(p.t, "the daemon ends", func() bool { return hasEnded(pid) && !isHeld(p.home) })
}

// hasEnded reports whether a process has ended. The system's first process may take seconds until it
// waits for a daemon, which is a zombie that long.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return sendSignal(pid, syscall.Signal(0)) != nil
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

// isHeld reports whether a process has the lock of a data directory.
func isHeld(dir string) bool {
	lock, err := socket.Hold(dir)
	if err == nil {
		lock.Release()
	}
	return errors.As(err, new(*socket.HeldError))
}

// patch overwrites bytes of the database file.
func (p *place) patch(at int64, data []byte) {
	p.t.Helper()
	f, err := os.OpenFile(filepath.Join(p.home, "lashd.db"), os.O_RDWR, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, at); err != nil {
		p.t.Fatal(err)
	}
}

// swap replaces stored text, in all its copies, by other text of the same length.
func (p *place) swap(old, new string) {
	p.t.Helper()
	path := filepath.Join(p.home, "lashd.db")
	data, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), old, new)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// serveModels configures a model server that answers every request with a status.
func (p *place) serveModels(status int) {
	p.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	p.t.Cleanup(server.Close)
	p.write("config.toml", "base_url = '"+server.URL+"/v1'\n")
}

// userVersionAt is the offset of the schema version in a database file:
// https://www.sqlite.org/fileformat.html.
const userVersionAt = 60

func TestDoctor(t *testing.T) {
	for _, test := range []struct {
		name, id, detail, remedy string
		prepare                  func(*place)
	}{
		{"healthy", "database", "1 sessions", "", (*place).stop},
		{"served", "daemon", "pid", "", func(*place) {}},
		{"a flipped byte", "database", "log is broken at event", "backup", func(p *place) { p.stop(); p.swap("turn/accepted", "turn/acceptef") }},
		{"a page overwritten", "database", "damaged", "backup", func(p *place) { p.stop(); p.patch(4096, make([]byte, 4096)) }},
		{"no database", "database", "not a database", "backup", func(p *place) { p.stop(); p.patch(0, []byte("something else")) }},
		{"newer schema", "database", "newer version of lashd", "install a newer lashd", func(p *place) {
			p.stop()
			p.patch(userVersionAt, binary.BigEndian.AppendUint32(nil, 1000))
		}},
		{"other schema", "database", "CREATE INDEX turns_by_session", "run the lashd build that wrote it", func(p *place) {
			p.stop()
			p.swap("turns_by_session", "turns_of_session")
		}},
		{"too open", "directory", "chmod 700", "follow the message", func(p *place) { p.stop(); os.Chmod(p.home, 0o755) }},
		{"wrong config", "config", "did you mean model?", "lashd schema config", func(p *place) { p.stop(); p.write("config.toml", "modle = 'x'\n") }},
		{"outside/23 no key", "model", "OPENAI_API_KEY is not set", "export the API key", func(p *place) {
			p.stop()
			p.environ = append(p.environ, "OPENAI_API_KEY=", "OPENAI_BASE_URL=")
			p.write("config.toml", "model = 'gpt-5'\n")
		}},
		{"outside/23 no key for the daemon", "model", "was not set when the daemon started", "export the API key", func(p *place) {
			p.stop()
			p.environ = append(p.environ, "OPENAI_API_KEY=", "OPENAI_BASE_URL=")
			p.write("config.toml", "model = 'gpt-5'\n")
			p.want(0, "", "", "call", "ping")
		}},
		{"outside/23 a model server that is down", "model", "connection refused", "start the server", func(p *place) {
			p.stop()
			p.write("config.toml", "base_url = 'http://127.0.0.1:1/v1'\n")
		}},
		{"outside/23 a key that the server refuses", "model", "HTTP 401", "export a valid key", func(p *place) {
			p.stop()
			p.serveModels(http.StatusUnauthorized)
		}},
		{"outside/23 a model server that works", "model", "accepts requests", "", func(p *place) {
			p.stop()
			p.serveModels(http.StatusOK)
		}},
		{"held", "lock", "another lashd holds", "was not checked", func(p *place) {
			p.stop()
			cmd := p.command("stdio", "--isolated")
			in, out := pipes(p.t, cmd)
			if err := cmd.Start(); err != nil {
				p.t.Fatal(err)
			}
			io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
			out.Read(make([]byte, 1)) // once it serves, it holds the lock
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			p.session()
			test.prepare(p)
			checkDiagnosis(t, p, test.id, test.detail, test.remedy)
		})
	}
}

// checkDiagnosis checks one check in both forms of the diagnosis.
func checkDiagnosis(t *testing.T, p *place, id, detail, remedy string) {
	t.Helper()
	code, word := 0, "ok"
	if remedy != "" {
		code, word = console.ExitFailed, "WRONG"
	}
	r := p.want(code, "", "", "doctor", "--json")
	var d diagnosis.Diagnosis
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		t.Fatalf("doctor prints %q, %v; want JSON", r.out, err)
	}
	found := false
	for _, c := range d.Checks {
		found = found || c.ID == id && c.OK == (remedy == "") && strings.Contains(c.Detail, detail) && strings.Contains(c.Remedy, remedy)
	}
	if !found || d.Healthy != (remedy == "") {
		t.Errorf("doctor prints %s; want %s: %q, %q", r.out, id, detail, remedy)
	}
	p.want(code, word, "", "doctor")
}

func TestDirectoriesInPlaceOfFiles(t *testing.T) {
	for _, name := range []string{"lashd.witness", "lashd.ballast", "lashd.db"} {
		t.Run("outside/15 a directory in place of "+name, func(t *testing.T) {
			p := newPlace(t)
			p.session()
			p.stop()
			path := filepath.Join(p.home, name)
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
			p.want(console.ExitFailed, "", name+" is a directory, not a file; nothing was changed; move "+path+" out of the data directory", "serve")
			p.want(console.ExitFailed, "move "+path+" out of the data directory", "", "doctor")
		})
	}
}

func TestDoctorWithoutRoomForItsCopy(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", dir).CombinedOutput()
	skip.Unless(t, "MOUNT", err == nil, "no small file system can be mounted: "+string(out))
	t.Cleanup(func() { exec.Command("umount", dir).Run() })
	p := newPlace(t)
	p.session()
	p.kill()
	p.environ = append(p.environ, "TMPDIR="+dir)
	if r := p.want(console.ExitFailed, "set TMPDIR to a directory with more", "", "doctor"); strings.Contains(r.out, "restore a backup") {
		t.Errorf("outside/23 doctor suggests to restore a backup: %s", r.out)
	}
}

func TestRejectedParamsInPlainWords(t *testing.T) {
	p := newPlace(t)
	p.session()
	p.want(console.ExitFailed, "", "lash: / already exists; choose a directory that does not exist\n", "backup", "/")
	none := filepath.Join(t.TempDir(), "none")
	p.want(console.ExitFailed, "", "lash: parameter dir cannot be created: "+none+" does not exist", "backup", filepath.Join(none, "copy"))
	p.want(console.ExitFailed, "", `lash: unknown field "config"; lashd schema session/new describes the parameters`, "call", "session/new", `{"config":{}}`)
}

func TestDoctorNamesTheContainment(t *testing.T) {
	p := newPlace(t)
	p.session()
	if r := p.want(0, `"id":"containment","ok":true`, "", "doctor", "--json"); !strings.Contains(r.out, `"detail":"supervisors`) && !strings.Contains(r.out, `"detail":"process groups"`) {
		t.Errorf("outside/10 doctor prints %s", r.out)
	}
}

func TestBackupOfADamagedStore(t *testing.T) {
	t.Run("outside/16 a backup of a damaged store lists the damage and exits with 6", func(t *testing.T) {
		p := newPlace(t)
		p.session()
		p.stop()
		p.swap("turn/accepted", "turn/acceptef")
		copied := filepath.Join(t.TempDir(), "copy")
		p.want(6, "", "log is broken at event", "backup", copied)
		if _, err := os.Stat(filepath.Join(copied, "lashd.db")); err != nil {
			t.Error(err)
		}
	})
}

func TestDoctorBeforeTheFirstStart(t *testing.T) {
	t.Run("outside/23 before the first start, doctor reports what would make a run fail", func(t *testing.T) {
		p := newPlace(t)
		p.environ = append(p.environ, "LASHD_HOME="+filepath.Join(t.TempDir(), "none"), "OPENAI_API_KEY=", "OPENAI_BASE_URL=")
		p.want(console.ExitFailed, "lash login", "", "doctor")
	})
}

func TestNewerSchemaIsNotTouched(t *testing.T) {
	p := newPlace(t)
	p.session()
	p.stop()
	p.patch(userVersionAt, binary.BigEndian.AppendUint32(nil, 1000))
	before, _ := os.ReadFile(filepath.Join(p.home, "lashd.db"))
	p.want(console.ExitNewer, "", "install a newer lashd", "serve")
	p.want(console.ExitFailed, "", "", "doctor")
	if after, _ := os.ReadFile(filepath.Join(p.home, "lashd.db")); string(after) != string(before) {
		t.Error("reliability/P23 the database was changed")
	}
}

func TestMissingConfig(t *testing.T) {
	p := newPlace(t)
	p.want(0, `"problems":[]`, "", "config", "--json")
	p.want(console.ExitFailed, "", "lash: open "+filepath.Join(p.home, "none.toml")+": no such file", "config", filepath.Join(p.home, "none.toml")) // part13/7
}

// TestModelChangeIsNotStale changes what the daemon applies without a restart.
func TestModelChangeIsNotStale(t *testing.T) {
	p := newPlace(t)
	const models = "\n[[models]]\nid = \"a\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"NONE\"\n[[models]]\nid = \"b\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"NONE\"\n"
	p.write("config.toml", "model = \"a\""+models)
	p.want(0, "", "", "session")
	stale := func(want bool) {
		t.Helper()
		if got := strings.Contains(p.run("doctor").out, "changed after the daemon started"); got != want {
			t.Errorf("doctor says that config.toml changed: %t, want %t", got, want)
		}
	}
	t.Run("issue/21-4 after lash model use and lash rules add --user, no restart is advised, since the daemon applies them at once", func(t *testing.T) {
		p.want(0, "new sessions use b", "", "model", "use", "b")
		stale(false)
		p.want(0, "added", "", "rules", "add", "--user", "deny", "command", "x")
		stale(false)
	})
	t.Run("issue/21-4 another change needs a restart, also together with one of the model", func(t *testing.T) {
		time.Sleep(20 * time.Millisecond) // file systems count time in steps of up to 10 ms
		p.write("config.toml", "model = \"a\"\nserver_down_for = \"2s\"\n"+models)
		stale(true)
		p.want(0, "new sessions use b", "", "model", "use", "b")
		stale(true)
	})
}

func TestConfigChangedAfterTheDaemonStarted(t *testing.T) {
	p := newPlace(t)
	p.session()
	stale := func(want bool) {
		t.Helper()
		for _, r := range []result{p.want(0, "", "", "doctor"), p.want(0, "", "", "config")} {
			said := r.out + r.err
			if got := strings.Contains(said, "changed after the daemon started"); got != want || got != strings.Contains(said, `restart the daemon to apply it`) {
				t.Errorf("stderr %q, want a note about a change: %t", said, want)
			}
		}
	}
	stale(false)
	p.write("config.toml", "script = \"script.json\"\n# changed\n")
	stale(true)
	p.stop()
	stale(false)
	p.session()
	stale(false)
}
