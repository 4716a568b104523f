//go:build unix

package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host records progress and artifacts.
type host struct {
	tool.Caller
	tool.Deferrer
	tool.Asker
	mu       sync.Mutex
	progress []string
	artifact []byte
	media    string
	fail     error
}

func (h *host) Progress(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = append(h.progress, text)
}

func (h *host) WriteArtifact(ctx context.Context, media string, data []byte) (protocol.ArtifactRef, error) {
	h.artifact, h.media = data, media
	if h.fail != nil {
		return protocol.ArtifactRef{}, h.fail
	}
	return protocol.ArtifactRef{Digest: protocol.DigestOf(data), Size: int64(len(data)), Type: media}, ctx.Err()
}

func (h *host) Touch(context.Context, string) error { panic("the shell does not know what it changes") }

func newShell(t testing.TB) *shell {
	return &shell{cwd: t.TempDir(), environ: os.Environ(), nonce: t.Name(), reading: make(chan struct{}, 1)}
}

type outcome struct {
	protocol.ToolOutput
	value value
	host  *host
}

func (s *shell) call(t testing.TB, ctx context.Context, a args) outcome {
	t.Helper()
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	o := outcome{host: &host{}}
	res, err := s.Execute(ctx, tool.Invocation{Name: "shell", Args: data, Host: o.host})
	if err != nil {
		t.Fatal(err)
	}
	o.ToolOutput = res.Output
	if len(o.Value) > 0 {
		if err := json.Unmarshal(o.Value, &o.value); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// patience is how long a test waits for anything.
const patience = time.Minute

// wait waits until a file has content, and returns it.
func wait(t testing.TB, name string) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if data, err := os.ReadFile(name); err == nil && bytes.HasSuffix(data, []byte("\n")) {
			return strings.TrimSpace(string(data))
		}
	}
	t.Errorf("nothing in %s", name) // not Fatal: some callers are goroutines
	return ""
}

// dead waits until a process has ended. A zombie that init has not reaped counts as ended.
func dead(t testing.TB, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
		if runtime.GOOS == "linux" && (err != nil || bytes.Contains(stat, []byte(") Z "))) || syscall.Kill(n, 0) != nil {
			return
		}
	}
	t.Errorf("process %d is alive", n)
}

func TestShell(t *testing.T) {
	s := newShell(t)
	t.Run("runtime/K01 output and exit code are data", func(t *testing.T) {
		o := s.call(t, t.Context(), args{Command: "echo out; echo err >&2; exit 3"})
		if o.Status != protocol.OutputSuccess || o.value.ExitCode != 3 || o.Text != "out\nerr\n[Exit code 3.]\n" {
			t.Errorf("got %+v, value %+v", o.ToolOutput, o.value)
		}
		o = s.call(t, t.Context(), args{Command: "echo out; exit 3", Plain: true})
		if o.Status != protocol.OutputSuccess || o.value.ExitCode != 3 || o.Text != "out\n" {
			t.Errorf("for code: got %+v, value %+v", o.ToolOutput, o.value)
		}
		o = s.call(t, t.Context(), args{Command: "kill -9 $$"})
		if o.Status != protocol.OutputSuccess || o.value.Signal != "SIGKILL" || o.Text != "[Ended by SIGKILL.]\n" {
			t.Errorf("got %+v, value %+v", o.ToolOutput, o.value)
		}
	})
	t.Run("runtime/K01 no input, no terminal, no secrets", func(t *testing.T) {
		s := newShell(t)
		s.environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=/home/x", "LASHD_SOCKET=x", "OPENAI_API_KEY=x", "gh_token=x", "DB=postgres://u:pw@h/d", "TERM=xterm", "PWD=/x"}
		o := s.call(t, t.Context(), args{Command: "cat; env | sort; test -t 1 || echo no terminal"})
		for _, bad := range []string{"LASHD_SOCKET", "API_KEY", "gh_token", "postgres", "xterm"} {
			if strings.Contains(o.Text, bad) {
				t.Errorf("the command sees %s:\n%s", bad, o.Text)
			}
		}
		for _, want := range []string{"HOME=/home/x\n", "TERM=dumb\n", "no terminal\n", "PWD=" + o.dir(t, s) + "\n"} {
			if !strings.Contains(o.Text, want) {
				t.Errorf("no %q in\n%s", want, o.Text)
			}
		}
	})
	t.Run("runtime/K01 the working directory must be in the workspace", func(t *testing.T) {
		if err := os.MkdirAll(filepath.Join(s.cwd, "sub/dir"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/", filepath.Join(s.cwd, "root")); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"sub/dir", filepath.Join(s.cwd, "sub/dir"), "./sub/../sub/dir"} {
			if o := s.call(t, t.Context(), args{Command: "basename $(pwd)", Workdir: dir}); !strings.HasPrefix(o.Text, "dir\n") {
				t.Errorf("%s: %s", dir, o.Text)
			}
		}
		for _, dir := range []string{"..", "/", "root", "missing", s.cwd + "/../", "/tmp\x00"} {
			if o := s.call(t, t.Context(), args{Command: "pwd", Workdir: dir}); o.Failure == nil || o.Failure.Code != "invalid_workdir" {
				t.Errorf("%q: got %+v, want a refusal", dir, o.ToolOutput)
			}
		}
	})
	for _, a := range []args{{}, {Command: " "}, {Command: "x", TimeoutMs: -1}, {Command: "x", TimeoutMs: 3_600_001}, {Command: "a\x00b"}} {
		if o := s.call(t, t.Context(), a); o.Failure == nil || o.Failure.Class != protocol.FailInvalidRequest {
			t.Errorf("%+v: got %+v, want a refusal", a, o.ToolOutput)
		}
	}
}

func (o outcome) dir(t testing.TB, s *shell) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(s.cwd)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEndOfCommand(t *testing.T) {
	t.Run("runtime/K01 a cancelled command dies with its group", func(t *testing.T) {
		s := newShell(t)
		ctx, cancel := context.WithCancel(t.Context())
		pid := make(chan string, 1)
		go func() {
			pid <- wait(t, filepath.Join(s.cwd, "pid"))
			cancel()
		}()
		o := s.call(t, ctx, args{Command: "echo before; sleep 100 & echo $! > pid; wait"})
		if o.Status != protocol.OutputCancelled || !strings.HasPrefix(o.Text, "before\n[Cancelled.") {
			t.Errorf("got %+v", o.ToolOutput)
		}
		dead(t, <-pid)
	})
	t.Run("runtime/K01 a command that ignores SIGTERM dies too", func(t *testing.T) {
		s := newShell(t)
		start := time.Now()
		o := s.call(t, t.Context(), args{Command: "trap '' TERM; echo $$ > pid; echo before; while :; do sleep 1; done", TimeoutMs: 2000})
		if o.Failure == nil || o.Failure.Class != protocol.FailTimeout || o.value.Signal != "SIGKILL" {
			t.Errorf("got %+v, value %+v", o.ToolOutput, o.value)
		}
		if took := time.Since(start); took > patience {
			t.Errorf("took %s", took)
		}
		dead(t, wait(t, filepath.Join(s.cwd, "pid")))
	})
	t.Run("runtime/K01 a timeout is a failure with the output so far", func(t *testing.T) {
		o := newShell(t).call(t, t.Context(), args{Command: "echo before; sleep 100", TimeoutMs: 2000})
		if o.Failure == nil || o.Failure.Code != "timeout" || !strings.HasPrefix(o.Text, "before\n[Stopped after 2s.") {
			t.Errorf("got %+v", o.ToolOutput)
		}
	})
	t.Run("runtime/K01 a background process does not outlive the command", func(t *testing.T) {
		s := newShell(t)
		o := s.call(t, t.Context(), args{Command: "sleep 100 & echo $! > pid"})
		if o.Status != protocol.OutputSuccess || o.value.DurationMs > 5000 || o.value.Escaped {
			t.Errorf("got %+v, value %+v", o.ToolOutput, o.value)
		}
		dead(t, wait(t, filepath.Join(s.cwd, "pid")))
	})
	t.Run("runtime/K01 a process that left the group and holds the output is stopped", func(t *testing.T) {
		skip.Unless(t, "LINUX", runtime.GOOS == "linux", "setsid is not everywhere")
		s := newShell(t)
		other := make(chan outcome)
		go func() {
			other <- s.call(t, t.Context(), args{Command: "while ! test -s done; do sleep 0.01; done; echo alive"})
		}()
		o := s.call(t, t.Context(), args{Command: "setsid sh -c 'echo $$ > pid; sleep 100' & while ! test -s pid; do sleep 0.01; done"})
		dead(t, wait(t, filepath.Join(s.cwd, "pid")))
		if o.value.Escaped || strings.Contains(o.Text, "left the command's group") {
			t.Errorf("got %+v, value %+v", o.ToolOutput, o.value)
		}
		if err := os.WriteFile(filepath.Join(s.cwd, "done"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if o := <-other; o.value.ExitCode != 0 || !strings.HasPrefix(o.Text, "alive") {
			t.Errorf("another call of the session got %+v, want it to go on", o.ToolOutput)
		}
	})
	t.Run("runtime/K01 a process that left the group unnoticed is found by the daemon's nonce", func(t *testing.T) {
		skip.Unless(t, "LINUX", runtime.GOOS == "linux", "setsid is not everywhere")
		s := newShell(t)
		s.call(t, t.Context(), args{Command: "setsid sh -c 'echo $$ > pid; sleep 100' >/dev/null 2>&1 & while ! test -s pid; do sleep 0.01; done"})
		pid := wait(t, filepath.Join(s.cwd, "pid"))
		if swept, err := proc.Sweep(s.nonce); err != nil || !slices.ContainsFunc(swept, func(p int) bool { return strconv.Itoa(p) == pid }) {
			t.Errorf("swept %v, error %v; want %s among them", swept, err, pid)
		}
		dead(t, pid)
	})
	t.Run("runtime/K01 a cancelled call runs nothing", func(t *testing.T) {
		s := newShell(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if o := s.call(t, ctx, args{Command: "touch ran"}); o.Status != protocol.OutputCancelled {
			t.Errorf("got %+v", o.ToolOutput)
		}
		if _, err := os.Stat(filepath.Join(s.cwd, "ran")); err == nil {
			t.Error("it ran")
		}
	})
}

func TestLongOutput(t *testing.T) {
	t.Run("runtime/K01 the artifact has the complete output", func(t *testing.T) {
		o := newShell(t).call(t, t.Context(), args{Command: "seq 200000"})
		var want bytes.Buffer
		for i := range 200_000 {
			fmt.Fprintln(&want, i+1)
		}
		if !bytes.Equal(o.host.artifact, want.Bytes()) || o.host.media != "text/plain" || o.Artifact == nil || o.Artifact.Size != int64(want.Len()) {
			t.Errorf("artifact of %d bytes, want %d: %+v", len(o.host.artifact), want.Len(), o.Artifact)
		}
		for _, part := range []string{"1\n2\n3\n", " bytes omitted ...]\n", "199999\n200000\n[Exit code 0.]\n"} {
			if !strings.Contains(o.Text, part) {
				t.Errorf("no %q in the text of %d bytes", part, len(o.Text))
			}
		}
		if len(o.Text) > 50<<10+200 || !o.value.Truncated {
			t.Errorf("%d bytes of text, value %+v", len(o.Text), o.value)
		}
	})
	t.Run("runtime/K01 output up to 50 KiB has no artifact", func(t *testing.T) {
		o := newShell(t).call(t, t.Context(), args{Command: fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", 50<<10)})
		if o.Artifact != nil || o.value.Truncated || len(o.Text) != 50<<10+len("\n[Exit code 0.]\n") {
			t.Errorf("%d bytes, artifact %v, value %+v", len(o.Text), o.Artifact, o.value)
		}
	})
	t.Run("reliability/P29 100 MB stay within bounds", func(t *testing.T) {
		s := newShell(t)
		runtime.GC()
		var base, now runtime.MemStats
		runtime.ReadMemStats(&base)
		var most atomic.Uint64
		ctx, cancel := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() {
			for ctx.Err() == nil {
				runtime.ReadMemStats(&now)
				most.Store(max(most.Load(), now.HeapAlloc))
				time.Sleep(10 * time.Millisecond)
			}
		})
		o := s.call(t, t.Context(), args{Command: "yes 0123456789abcde | head -c 100000000; echo end"})
		cancel()
		watch.Wait()
		// The artifact is in memory once, because the store takes it in one piece.
		if used := int64(most.Load()) - int64(base.HeapAlloc); used > 80<<20 {
			t.Errorf("%d MiB of memory", used>>20)
		}
		if len(o.host.artifact) != 64<<20 || len(o.Text) > 50<<10+300 {
			t.Errorf("artifact of %d bytes, text of %d", len(o.host.artifact), len(o.Text))
		}
		if !strings.Contains(o.Text, "end\n") || !strings.Contains(o.Text, "the artifact holds the first 67108864.") {
			t.Errorf("text ends in %q", o.Text[max(0, len(o.Text)-200):])
		}
	})
	t.Run("runtime/K01 binary output becomes valid text", func(t *testing.T) {
		o := newShell(t).call(t, t.Context(), args{Command: `printf 'a\377\000\303b\303\244\n'; head -c 100000 /dev/urandom`})
		if !utf8.ValidString(o.Text) || !strings.HasPrefix(o.Text, "a\uFFFD") || !strings.Contains(o.Text, "b\u00e4\n") || strings.Contains(o.Text, "\x00") {
			t.Errorf("got %.50q", o.Text)
		}
		for _, p := range o.host.progress {
			if !utf8.ValidString(p) {
				t.Errorf("progress %.50q", p)
			}
		}
		if len(o.host.artifact) != 100_008 {
			t.Errorf("artifact of %d bytes", len(o.host.artifact))
		}
	})
}

func TestProgress(t *testing.T) {
	t.Run("runtime/K01 progress arrives while the command runs, at a bounded rate", func(t *testing.T) {
		s := newShell(t)
		start := time.Now()
		o := s.call(t, t.Context(), args{Command: "echo first; sleep 0.5; seq 100000; printf last"})
		most := int(time.Since(start)/(100*time.Millisecond)) + 2
		if n := len(o.host.progress); n < 2 || n > most {
			t.Errorf("%d pieces, want 2 to %d", n, most)
		}
		if o.host.progress[0] != "first\n" {
			t.Errorf("first piece %q", o.host.progress[0])
		}
		joined := strings.Join(o.host.progress, "")
		if !strings.Contains(joined, "[...]") || !strings.HasSuffix(joined, "100000\nlast") {
			t.Errorf("ends in %q", joined[max(0, len(joined)-50):])
		}
		for _, p := range o.host.progress {
			if len(p) > 4<<10+10 {
				t.Errorf("a piece of %d bytes", len(p))
			}
		}
	})
}

func TestFactory(t *testing.T) {
	p, err := New(Config{}).Build(plugin.BuildContext{Cwd: "/does/not/exist"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Register(&plugin.Registrar{}); err != nil {
		t.Error(err)
	}
	if err := tool.CheckSchema(offers()[0].tool.Manifest.Input); err != nil {
		t.Error(err)
	}
}
