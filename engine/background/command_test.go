//go:build unix

package background

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lashd/rpc/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a running command.
type running struct {
	t       *testing.T
	task    protocol.Task
	outputs *Outputs
	signals chan Signal
	ended   chan *protocol.TaskOutcome
	stop    context.CancelCauseFunc
}

func run(t *testing.T, shell protocol.TaskShell) *running {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	r := &running{t: t, signals: make(chan Signal), ended: make(chan *protocol.TaskOutcome, 1), stop: stop}
	r.outputs = NewOutputs(t.TempDir())
	r.task = protocol.Task{ID: "tsk_x", Spec: protocol.TaskSpec{Command: &shell}}
	c := &Commands{Environ: []string{"PATH=" + os.Getenv("PATH")}, Nonce: t.Name(), Outputs: r.outputs}
	go func() { r.ended <- c.Run(ctx, &r.task, t.TempDir(), r.signals) }()
	return r
}

// interrupted sends interrupts until the command has ended. A shell that is about to start a program may lose one.
func (r *running) interrupted() *protocol.TaskOutcome {
	for {
		done := make(chan error, 1)
		select {
		case r.signals <- Signal{Name: "interrupt", By: "cli_a", Done: done}:
			<-done
		case out := <-r.ended:
			return out
		}
		select {
		case out := <-r.ended:
			return out
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (r *running) send(name, payload string) error {
	done := make(chan error, 1)
	s := Signal{Name: name, By: "cli_a", Done: done}
	if payload != "" {
		s.Payload = json.RawMessage(payload)
	}
	select {
	case r.signals <- s:
	case <-time.After(patience):
		r.t.Fatalf("the command does not accept %s", name)
	}
	return <-done
}

// patience is how long a test waits for anything.
const patience = time.Minute

// has waits until the output contains want, and returns all of it.
func (r *running) has(want string) string {
	r.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		out := r.output()
		switch {
		case strings.Contains(out, want):
			return out
		case time.Now().After(end):
			r.t.Fatalf("there is no %q in %q", want, out)
		}
	}
}

func (r *running) output() string {
	r.t.Helper()
	out, err := r.outputs.Read(&r.task, 0, 1<<20)
	if err != nil {
		r.t.Fatal(err)
	}
	return out.Text
}

// gone waits until a process has ended. A zombie counts as ended.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(n), "stat"))
		if runtime.GOOS == "linux" && (err != nil || strings.Contains(string(stat), ") Z ")) || syscall.Kill(n, 0) != nil {
			return
		}
	}
	t.Errorf("process %d is alive", n)
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, from)
	got, _, ended := strings.Cut(rest, to)
	if !found || !ended {
		t.Fatalf("nothing between %q and %q in %q", from, to, text)
	}
	return got
}

func TestTerminal(t *testing.T) {
	size := &protocol.TaskTerminal{Columns: 100, Rows: 30}
	t.Run("runtime/K02 a command that asks for a terminal gets one of the requested size", func(t *testing.T) {
		r := run(t, protocol.TaskShell{PTY: size, Script: `tty -s && echo $TERM $(stty size)
read x; echo "got $x"; until [ "$(stty size)" = "20 70" ]; do sleep 0.02; done; echo "now $(stty size)"; while read x; do echo "and $x"; done; echo end; exit 4`})
		r.has("xterm-256color 30 100\r\n")
		if err := r.send("stdin", `{"text":"hello\n"}`); err != nil {
			t.Fatal(err)
		}
		r.has("got hello\r\n")
		if err := r.send("resize", `{"columns":70,"rows":20}`); err != nil {
			t.Fatal(err)
		}
		if err := r.send("stdin", `{"text":"more\n"}`); err != nil {
			t.Fatal(err)
		}
		r.has("now 20 70\r\n")
		if err := r.send("closeStdin", ""); err != nil {
			t.Fatal(err)
		}
		out := <-r.ended
		if out.Kind != protocol.TaskExited || *out.ExitCode != 4 || !strings.HasSuffix(r.output(), "end\r\n") {
			t.Errorf("it ended as %+v with %q", out, r.output())
		}
	})
	t.Run("runtime/K02 an interrupt reaches the foreground process of a terminal", func(t *testing.T) {
		r := run(t, protocol.TaskShell{PTY: size, Script: "echo ready; sleep 1000"})
		r.has("ready")
		if out := r.interrupted(); out.Kind != protocol.TaskStopped || out.Signal != "SIGINT" || out.By != "cli_a" {
			t.Errorf("it ended as %+v", out)
		}
	})
}

func TestInterrupt(t *testing.T) {
	t.Run("runtime/K02 a command that ends by an interrupt counts as stopped by its sender", func(t *testing.T) {
		r := run(t, protocol.TaskShell{Script: "echo ready; sleep 1000"})
		r.has("ready")
		if out := r.interrupted(); out.Kind != protocol.TaskStopped || out.Signal != "SIGINT" || out.By != "cli_a" {
			t.Errorf("it ended as %+v", out)
		}
	})
	t.Run("runtime/K02 a command can handle an interrupt", func(t *testing.T) {
		r := run(t, protocol.TaskShell{Script: "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.02; done"})
		r.has("ready")
		if out := r.interrupted(); out.Kind != protocol.TaskExited || *out.ExitCode != 7 {
			t.Errorf("it ended as %+v", out)
		}
	})
	t.Run("runtime/K02 input to a closed stdin is rejected", func(t *testing.T) {
		r := run(t, protocol.TaskShell{Script: "exec <&-; echo ready; sleep 1000"})
		r.has("ready")
		if err := r.send("closeStdin", ""); err != nil {
			t.Fatal(err)
		}
		if err := r.send("stdin", `{"text":"x"}`); !errors.Is(err, ErrClosed) {
			t.Errorf("it is answered with %v", err)
		}
		r.stop(nil)
		<-r.ended
	})
}

func TestTreeDies(t *testing.T) {
	for _, c := range []struct {
		name string
		pty  *protocol.TaskTerminal
	}{{"of a pipe", nil}, {"of a terminal", &protocol.TaskTerminal{}}} {
		t.Run("runtime/K01 stopping a command also ends processes that left its group, "+c.name, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				return // only Linux can find processes that left the group
			}
			r := run(t, protocol.TaskShell{PTY: c.pty, Script: `setsid sh -c 'echo "away=$$."; sleep 1000' & sleep 1000 & echo "beside=$!."; wait`})
			r.has("beside=")
			out := r.has("away=")
			r.stop(errors.New("enough"))
			if end := <-r.ended; end.Kind != protocol.TaskStopped {
				t.Errorf("it ended as %+v", end)
			}
			gone(t, between(t, out, "away=", "."))
			gone(t, between(t, r.output(), "beside=", "."))
		})
	}
	t.Run("runtime/K01 jobs of a shell end with its terminal", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			return
		}
		r := run(t, protocol.TaskShell{PTY: &protocol.TaskTerminal{}, Script: `set -m; sh -c 'trap "" HUP; echo "job=$$."; sleep 1000' & sleep 0.3; exit 5`})
		pid := between(t, r.has("job="), "job=", ".")
		if out := <-r.ended; out.Kind != protocol.TaskExited || *out.ExitCode != 5 {
			t.Errorf("it ended as %+v", out)
		}
		gone(t, pid)
	})
}

func TestDetachedOutput(t *testing.T) {
	t.Run("issue/5-2 output of a detached command is stored up to the limit and never blocks the command", func(t *testing.T) {
		c := &Commands{Environ: []string{"PATH=" + os.Getenv("PATH")}, Outputs: NewOutputs(t.TempDir())}
		task := &protocol.Task{ID: "tsk_x", Spec: protocol.TaskSpec{Command: &protocol.TaskShell{Script: "head -c 68000000 /dev/zero; exit 9", Detach: true}}}
		if _, err := c.Detach(task, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		for {
			out, known := c.Ended(task)
			if !known {
				t.Fatal("it is nowhere")
			}
			if out != nil {
				if *out.ExitCode != 9 {
					t.Errorf("it ended as %+v", out)
				}
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		r, err := c.Outputs.Read(task, -1, 10)
		if err != nil || r.Size != 64<<20 || !r.Full {
			t.Errorf("%d bytes are kept: %v", r.Size, err)
		}
		if _, err := c.Detach(task, t.TempDir()); err == nil {
			t.Error("it is begun twice")
		}
		if err := c.Outputs.Remove(task); err != nil {
			t.Error(err)
		}
		if left, err := c.Outputs.Names(); err != nil || len(left) > 0 {
			t.Errorf("there is left %v, %v", left, err)
		}
	})
}

func TestReadAndEnded(t *testing.T) {
	t.Run("runtime/K02 input that a command has read counts as delivered even if reading it ends the command", func(t *testing.T) {
		var all sync.WaitGroup
		rounds := 4
		if os.Getenv("LASHD_LONG") != "" {
			rounds = 20
		}
		for range 64 { // repeat, because the outcome depends on timing
			all.Go(func() {
				for range rounds {
					r := run(t, protocol.TaskShell{Script: "read x"})
					if err := r.send("stdin", `{"text":"go\n"}`); err != nil {
						t.Errorf("it is answered with %v", err)
					}
					<-r.ended
				}
			})
		}
		all.Wait()
	})
}
