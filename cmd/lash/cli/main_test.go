package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/cmd/internal/daemon"
	lashd "lashd/cmd/lashd/cli"
	"lashd/rpc/protocol"
)

// asLashd is the environment variable that makes the test binary run as lash or lashd, by the name under which it is started. asVersion sets
// the version that it reports, and asLashdVersion that of lashd alone.
const asLashd, asVersion, asLashdVersion = "LASHD_TEST_MAIN", "LASHD_TEST_VERSION", "LASHD_TEST_LASHD_VERSION"

// programs is the directory with the names lash and lashd of the test binary.
var programs string

func TestMain(m *testing.M) {
	if os.Getenv(asLashd) == "" {
		os.Exit(runTests(m))
	}
	if v := os.Getenv(asVersion); v != "" {
		daemon.Version = v
	}
	if filepath.Base(os.Args[0]) == program {
		os.Exit(Main(os.Args[1:]))
	}
	if v := os.Getenv(asLashdVersion); v != "" {
		daemon.Version = v
	}
	os.Exit(lashd.Main(os.Args[1:]))
}

func runTests(m *testing.M) int {
	self, err := os.Executable()
	if err == nil {
		programs, err = os.MkdirTemp("", "lash-programs-")
	}
	if err == nil {
		err = errors.Join(os.Symlink(self, filepath.Join(programs, "lash")), os.Symlink(self, filepath.Join(programs, "lashd")))
	}
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(programs)
	return m.Run()
}

// ofMachines are the commands of lashd, which come first or after flags. All others are those of lash.
var ofMachines = []string{"serve", "stdio", "acp", "check", "schema", "demo"}

// place is a data directory with a scripted model, and a workspace.
type place struct {
	t          *testing.T
	home, work string
	environ    []string
}

const story = "Once upon a time there was a daemon that was killed in the middle of a sentence, and went on with it."

const script = `{"turns": [
	{"match": {"lastUserContains": "story"}, "replies": [{"text": "` + story + `", "chunkSize": 1, "delayMs": 20}]},
	{"match": {"lastUserContains": "escape"}, "replies": [{"text": "\u001b]52;c;aGk=\u0007 \u009b31m \u202eevil\u2069 \ttab\nend"}]},
	{"match": {"lastUserContains": "sleep"}, "replies": [{"toolCalls": [{"name": "shell", "args": {"command": "echo x > began; sleep 60"}}]}, {"text": "slept"}]},
	{"match": {"lastUserContains": "touch"}, "replies": [{"toolCalls": [{"name": "shell", "args": {"command": "touch touched"}}]}, {"text": "tried"}]},
	{"match": {"lastUserContains": "fail"}, "replies": [{"error": {"kind": "validation", "code": "refused", "message": "the model refused"}}]}
], "otherwise": {"replies": [{"text": "hello"}]}}`

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	p, user := &place{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}, filepath.Join(dir, "user")
	for _, d := range []string{p.home, p.work, user} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.write("script.json", script)
	p.write("config.toml", "script = \"script.json\"\n")
	p.environ = append(os.Environ(), asLashd+"=1", "PATH="+programs+":"+os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", "LASHD_HOME="+p.home, "LASHD_LOG=error",
		"LASHD_SOCKET="+filepath.Join(p.home, "run", "s"), "HOME="+user, "XDG_CONFIG_HOME="+filepath.Join(user, ".config"), // without the plugins of the user who runs the tests
		"DISPLAY=", "WAYLAND_DISPLAY=") // and without a browser
	t.Cleanup(func() {
		if pid := p.holder(); pid > 0 {
			sendSignal(pid, os.Kill)
		}
	})
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.home, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// holder returns the pid of the daemon, or 0.
func (p *place) holder() int {
	var h struct{ Pid int }
	data, err := os.ReadFile(filepath.Join(p.home, "lashd.lock.json"))
	if err != nil || json.Unmarshal(data, &h) != nil {
		return 0
	}
	return h.Pid
}

// kill kills the daemon with SIGKILL.
func (p *place) kill() {
	p.t.Helper()
	if err := sendSignal(p.holder(), os.Kill); err != nil {
		p.t.Fatal("kill the daemon: ", err)
	}
}

// result is the output and the exit code of a command.
type result struct {
	out, err string
	code     int
}

func (p *place) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(p.t.Context(), never)
	p.t.Cleanup(cancel)
	name := program
	if i := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(ofMachines, arg) }); i >= 0 && (i == 0 || strings.HasPrefix(args[0], "-")) {
		name = "lashd"
	}
	cmd := exec.CommandContext(ctx, filepath.Join(programs, name), args...)
	cmd.Env, cmd.Dir = p.environ, p.work
	return cmd
}

func (p *place) run(args ...string) result {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	return result{code: exitCode(p.t, cmd.Run()), out: out.String(), err: errs.String()}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	if ok {
		return exit.ExitCode()
	}
	return 0
}

// want runs a command and checks its exit code and that its streams contain out and err.
func (p *place) want(code int, out, err string, args ...string) result {
	p.t.Helper()
	r := p.run(args...)
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.err, err) {
		p.t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %d, %q, %q", strings.Join(args, " "), r.code, r.out, r.err, code, out, err)
	}
	return r
}

// session runs a turn and returns the id of its session.
func (p *place) session() string {
	p.t.Helper()
	p.want(0, "hello\n", "", "run", "hi")
	var all []protocol.Session
	r := p.want(0, "", "", "session", "--json")
	if err := json.Unmarshal([]byte(r.out), &all); err != nil || len(all) == 0 {
		p.t.Fatalf("session --json: %q, %v", r.out, err)
	}
	return string(all[0].ID)
}

// never is the time limit of a command in tests.
const never = 2 * time.Minute

// sendSignal sends a signal to any process.
func sendSignal(pid int, sig os.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer p.Release()
	return p.Signal(sig)
}
