package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lashd/test/fakemodel"
)

// built holds the commands under test, built once for all tests and benchmarks. Like the released
// builds, they do not use cgo.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lashd-bench-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir, "lashd/test/floor", "lashd/cmd/lashd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return dir, err
})

func TestMain(m *testing.M) {
	if manner := os.Getenv(mannerVariable); manner != "" {
		(&bully{manner, os.Getenv(whileVariable), os.Stdout}).serve()
		return
	}
	code := m.Run()
	if dir, err := built(); err == nil {
		os.RemoveAll(dir)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// target is a daemon to measure, with the way to run it against a model.
type target struct {
	name   string
	config func(bin, model, home string) Config
}

var targets = []target{
	{"floor", func(bin, model, home string) Config {
		return Config{
			Protocol: Floor,
			Args:     []string{filepath.Join(bin, "floor")},
			Env:      []string{"FLOOR_BASE=" + model, "FLOOR_DB=" + filepath.Join(home, "floor.db")},
			Dir:      home,
		}
	}},
	{"lashd", func(bin, model, home string) Config {
		data := filepath.Join(home, "data")
		config := fmt.Sprintf("model = \"fake\"\nbase_url = %q\napproval = \"allow\"\n", model)
		if err := errors.Join(os.MkdirAll(data, 0o700), os.WriteFile(filepath.Join(data, "config.toml"), []byte(config), 0o600)); err != nil {
			panic(err) // the temporary directory cannot be written
		}
		return Config{
			Protocol: Lashd,
			Args:     []string{filepath.Join(bin, "lashd"), "stdio", "--isolated"},
			Env:      []string{"LASHD_HOME=" + data, "LASHD_LOG=warn", "PATH=" + os.Getenv("PATH"), "HOME=" + home},
			Dir:      home,
		}
	}},
}

func TestDriver(t *testing.T) {
	for _, tg := range targets {
		t.Run(tg.name, func(t *testing.T) {
			model, cfg := setup(t, tg)
			p := start(t, cfg)
			sid, err := p.Create()
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Turn(sid, "hello "+fakemodel.Marker(25, 6, 0))
			if err != nil {
				t.Fatal(err)
			}
			if got.Deltas != 25 || len(got.At) != 25 || got.First <= 0 || got.First > got.Last || got.Last > got.Total {
				t.Errorf("turn = %d deltas, %d stamps, first %v, last %v, total %v; want 25 deltas in order", got.Deltas, len(got.At), got.First, got.Last, got.Total)
			}
			if _, err := p.Turn(sid, fakemodel.ToolMarker("shell", `{"command":"echo sesame"}`)); err != nil {
				t.Fatal(err)
			}
			reqs := model.Requests()
			chat := reqs[len(reqs)-1].Chat
			if last := chat.Messages[len(chat.Messages)-1]; last.Role != "tool" || !strings.Contains(string(last.Content), "sesame") {
				t.Errorf("last message to the model = %+v, want the tool's output", last)
			}
			if runtime.GOOS == "linux" {
				checkUsage(t, p)
			}
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}

			p = start(t, cfg)
			defer p.Close()
			res, err := p.Attach(sid)
			if err != nil {
				t.Fatal(err)
			}
			if tg.name == "floor" && !bytes.Contains(res, []byte("sesame")) {
				t.Errorf("attached session = %.300s, want the outcome of the last turn", res)
			}
			if got, err := p.Turn(sid, fakemodel.Marker(3, 6, 0)); err != nil || got.Deltas != 3 {
				t.Errorf("turn after attach = %d deltas, %v; want 3", got.Deltas, err)
			}
		})
	}
}

func TestStderrExplainsFailure(t *testing.T) {
	_, cfg := setup(t, targets[0])
	cfg.Env = []string{"FLOOR_DB=" + filepath.Join(cfg.Dir, "missing", "floor.db")}
	_, err := Start(cfg)
	if err == nil || !strings.Contains(err.Error(), "unable to open database") {
		t.Errorf("Start = %v, want what the process wrote to stderr", err)
	}
}

func TestLimitEndsCall(t *testing.T) {
	model, cfg := setup(t, targets[0])
	model.Push(fakemodel.Step{Parts: []fakemodel.Part{{Stall: true}}})
	cfg.Limit = 300 * time.Millisecond
	p := start(t, cfg)
	sid, err := p.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Turn(sid, "hello"); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("Turn with a stalled model = %v, want a timeout", err)
	}
	p.Kill()
}

func checkUsage(t *testing.T, p *Peer) {
	t.Helper()
	rss, err := p.RSS()
	if err != nil || rss < 1<<20 || rss > 1<<30 {
		t.Errorf("RSS = %d, %v; want some megabytes", rss, err)
	}
	if cpu, err := p.CPU(); err != nil || cpu < 0 || cpu > time.Minute {
		t.Errorf("CPU = %v, %v; want some milliseconds", cpu, err)
	}
}

func each(b *testing.B, f func(*testing.B, *fakemodel.Server, Config)) {
	for _, tg := range targets {
		b.Run(tg.name, func(b *testing.B) {
			model, cfg := setup(b, tg)
			f(b, model, cfg)
		})
	}
}

func setup(tb testing.TB, tg target) (*fakemodel.Server, Config) {
	tb.Helper()
	bin, err := built()
	if err != nil {
		tb.Fatal(err)
	}
	model, err := fakemodel.Start()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(model.Close)
	return model, tg.config(bin, model.URL, tb.TempDir())
}

func start(tb testing.TB, cfg Config) *Peer {
	tb.Helper()
	p, err := Start(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
