package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
)

// TestCopiedDirectory copies the published address of a daemon to another data directory, as a copy
// made while that daemon runs would.
func TestCopiedDirectory(t *testing.T) {
	p, copied := newPlace(t), newPlace(t)
	t.Run("outside/12 a copied data directory does not connect to the daemon of the original", func(t *testing.T) {
		copied.environ = append(copied.environ, "LASHD_SOCKET=")
		p.session()
		name, err := os.ReadFile(filepath.Join(p.home, "lashd.lock.json"))
		if err != nil {
			t.Fatal(err)
		}
		copied.write("lashd.lock.json", string(name))
		copied.want(0, copied.home, "", "call", "server/status")
		copied.stop()
	})
}

// TestAnotherRuntimeDirectory checks that commands find a daemon that was started with another
// XDG_RUNTIME_DIR.
func TestAnotherRuntimeDirectory(t *testing.T) {
	p := newPlace(t)
	data := filepath.Dir(p.home)
	if err := os.Rename(p.home, filepath.Join(data, "lashd")); err != nil {
		t.Fatal(err)
	}
	p.home = filepath.Join(data, "lashd")
	p.environ = append(p.environ, "LASHD_HOME=", "LASHD_SOCKET=", "XDG_DATA_HOME="+data)
	in := func(dir string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(data, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		p.environ = append(p.environ, "XDG_RUNTIME_DIR="+filepath.Join(data, dir))
	}
	in("first")
	id := p.session()
	pid := p.holder()
	in("second")
	p.want(0, id, "", "session")
	p.want(0, `"pid":`, "", "call", "server/status")
	r := p.want(0, `"sessions":1`, "", "doctor", "--json")
	if p.holder() != pid || strings.Contains(r.out, "not running") {
		t.Errorf("daemon pid %d before, %d after; doctor prints %s", pid, p.holder(), r.out)
	}
	p.environ = append(p.environ, "XDG_RUNTIME_DIR=") // as in a cron job
	p.want(0, "hello\n", "", "run", "--session", id, "hi")

	other := filepath.Join(data, "second", "s")
	p.want(console.ExitNoDaemon, "", "set LASHD_SOCKET or --socket to its socket", "--socket", other, "session")
	p.want(console.ExitFailed, "omit --socket and LASHD_SOCKET", "", "--socket", other, "doctor")
	p.kill()
	p.want(0, id, "", "session")
}
