package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/test/skip"
)

// edited is a Python plugin that the benchmark edits. Its operation returns its edition.
type edited struct {
	*Peer
	dir string
}

func newEdited(b *testing.B) *edited {
	b.Helper()
	_, cfg := setup(b, targets[1])
	e := &edited{dir: filepath.Join(cfg.Dir, ".config", "lashd", "plugins", "edited")}
	cfg.Env = append(cfg.Env, "XDG_CONFIG_HOME="+filepath.Join(cfg.Dir, ".config"))
	sdk, err := os.ReadFile(filepath.Join("..", "..", "plugins", "sdk", "python", "lashd_plugin.py"))
	manifest := fmt.Sprintf(`{"name":"edited","lashd":{
		"process":{"command":[%q,"${PLUGIN_ROOT}/edited.py"],"env":{"PYTHONDONTWRITEBYTECODE":"1"}},
		"operations":[{"name":"edited.edition","kind":"query","session":"forbidden"}]}}`, python(b))
	err = errors.Join(err, os.MkdirAll(e.dir, 0o700), os.WriteFile(filepath.Join(e.dir, "lashd_plugin.py"), sdk, 0o600),
		os.WriteFile(filepath.Join(e.dir, "plugin.json"), []byte(manifest), 0o600), e.save(0))
	if err != nil {
		b.Fatal(err)
	}
	e.Peer = start(b, cfg)
	b.Cleanup(func() { end(b, e.Peer) })
	return e
}

// python returns the real interpreter: the one in PATH may be a wrapper script.
func python(b *testing.B) string {
	b.Helper()
	name, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	skip.Unless(b, "PYTHON", err == nil, "there is no python3")
	return strings.TrimSpace(string(name))
}

// save writes an edition like an editor: to a temporary file, which is then renamed.
func (e *edited) save(edition int) error {
	text := fmt.Sprintf(`from lashd_plugin import Plugin
plugin = Plugin()
@plugin.operation("edited.edition")
def edition(call, args):
    return %d
plugin.run()
`, edition)
	draft := filepath.Join(e.dir, ".edited.py.new")
	return errors.Join(os.WriteFile(draft, []byte(text), 0o600), os.Rename(draft, filepath.Join(e.dir, "edited.py")))
}

// until calls the operation every 5 ms until an edition answers.
func (e *edited) until(b *testing.B, edition int) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		answer, err := e.call("operation/query", json.RawMessage(`{"name":"edited.edition"}`))
		var result struct {
			Output int `json:"output"`
		}
		if err == nil {
			err = json.Unmarshal(answer, &result)
		}
		if err == nil && result.Output == edition {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("edition %d does not answer: %s %v", edition, answer, err)
		}
	}
}

// BenchmarkSave measures the time from a save of a Python plugin until the new version answers a call.
// The change settles, is copied and checked, one process of it proves that it starts, and another one
// answers. It also reports how long Python alone takes to start with the same modules and to exit.
func BenchmarkSave(b *testing.B) {
	e := newEdited(b)
	e.until(b, 0)
	var effect, bare []time.Duration
	for edition := 1; b.Loop(); edition++ {
		time.Sleep(300 * time.Millisecond) // a person does not save more often
		began := time.Now()
		if err := e.save(edition); err != nil {
			b.Fatal(err)
		}
		e.until(b, edition)
		effect = append(effect, time.Since(began))
		bare = append(bare, interpreter(b, e.dir))
	}
	for name, times := range map[string][]time.Duration{"effect": effect, "python": bare} {
		metric(b, percentile(times, 50).Seconds()*1e3, name+"-median-ms")
		metric(b, percentile(times, 95).Seconds()*1e3, name+"-p95-ms")
		metric(b, slices.Max(times).Seconds()*1e3, name+"-max-ms")
	}
}

// interpreter returns how long Python takes to start, import the plugin module and exit.
func interpreter(b *testing.B, dir string) time.Duration {
	b.Helper()
	command := exec.Command(python(b), "-c", "import lashd_plugin")
	command.Dir, command.Env = dir, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	began := time.Now()
	if out, err := command.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return time.Since(began)
}
