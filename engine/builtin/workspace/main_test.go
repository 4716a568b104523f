package workspace

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "tell-lock" {
		tellLock(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

// bench is a workspace with a state directory beside it, and its file tools.
type bench struct {
	dir, state string
	files      *files
	host       *host
}

func newBench(t testing.TB) *bench {
	t.Helper()
	top := t.TempDir()
	b := &bench{dir: filepath.Join(top, "ws"), state: filepath.Join(top, "state"), host: &host{}}
	mkdir(t, b.dir)
	mkdir(t, b.state)
	b.open(t)
	return b
}

func (b *bench) open(t testing.TB) {
	b.files = newFiles(b.dir, b.state, &shelf{})
	t.Cleanup(func() {
		if err := b.files.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// host records touched paths.
type host struct {
	tool.Caller
	tool.Deferrer
	tool.Asker
	mu      sync.Mutex
	touched []string
	refuse  error
}

func (h *host) Progress(string) {}

func (h *host) WriteArtifact(context.Context, string, []byte) (protocol.ArtifactRef, error) {
	panic("no file tool writes artifacts")
}

func (h *host) Touch(_ context.Context, path string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.touched = append(h.touched, path)
	return h.refuse
}

func (b *bench) call(t testing.TB, name string, args any) protocol.ToolOutput {
	t.Helper()
	return b.callCtx(t, t.Context(), name, args)
}

func (b *bench) callCtx(t testing.TB, ctx context.Context, name string, args any) protocol.ToolOutput {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.files.Execute(ctx, tool.Invocation{Name: name, Args: data, Host: b.host})
	if err != nil {
		t.Fatalf("%s %s: %v", name, data, err)
	}
	return res.Output
}

func (b *bench) ok(t testing.TB, name string, args any) protocol.ToolOutput {
	t.Helper()
	out := b.call(t, name, args)
	if out.Status != protocol.OutputSuccess {
		t.Fatalf("%s %+v: %s: %s", name, args, out.Status, out.Text)
	}
	return out
}

func (b *bench) fails(t testing.TB, code, name string, args any) protocol.ToolOutput {
	t.Helper()
	out := b.call(t, name, args)
	if out.Failure == nil || out.Failure.Code != code {
		t.Fatalf("%s %+v: got %+v (%s), want failure %s", name, args, out.Failure, out.Text, code)
	}
	return out
}

func (b *bench) put(t testing.TB, name, content string) {
	t.Helper()
	put(t, filepath.Join(b.dir, name), content)
}

func (b *bench) get(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// names returns all files in the workspace.
func (b *bench) names(t testing.TB) []string {
	t.Helper()
	var list []string
	err := filepath.Walk(b.dir, func(p string, fi os.FileInfo, err error) error {
		if err == nil && !fi.IsDir() {
			rel, _ := filepath.Rel(b.dir, p)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func put(t testing.TB, name, content string) {
	t.Helper()
	mkdir(t, filepath.Dir(name))
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t testing.TB, name string) {
	t.Helper()
	if err := os.MkdirAll(name, 0o755); err != nil {
		t.Fatal(err)
	}
}

func symlink(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func has(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}
