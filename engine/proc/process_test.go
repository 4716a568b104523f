//go:build unix

package proc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

// roleVariable makes the test binary play a role instead of running tests.
const roleVariable = "PROC_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		return
	}
	goleak.VerifyTestMain(m)
}

func shell(script string) Command {
	return Command{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func start(t *testing.T, ctx context.Context, c Command) *Process {
	t.Helper()
	p, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(nil)
		p.Wait()
	})
	return p
}

func wait(t *testing.T, p *Process) Exit {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatalf("process %d is not done after a minute", p.Pid())
	}
	exit, err := p.Wait()
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	return exit
}

// witness is a pipe that reads EOF only when the last process that inherited its end is dead.
type witness struct{ read, end *os.File }

func newWitness(t *testing.T) witness {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return witness{r, w}
}

// release closes our copy of the end after the processes have inherited theirs.
func (w witness) release() { w.end.Close() }

// line waits until one of the processes has written a line.
func (w witness) line(t *testing.T) string {
	t.Helper()
	w.read.SetReadDeadline(time.Now().Add(10 * time.Second))
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := w.read.Read(b); err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// allDead reports whether every holder of the end dies within limit.
func (w witness) allDead(limit time.Duration) bool {
	w.read.SetReadDeadline(time.Now().Add(limit))
	_, err := io.Copy(io.Discard, w.read)
	return err == nil
}

func TestExit(t *testing.T) {
	for _, test := range []struct {
		script string
		want   Exit
	}{
		{"exit 0", Exit{}},
		{"exit 7", Exit{Code: 7}},
		{"kill -KILL $$", Exit{Code: -1, Signal: "SIGKILL"}},
		{"kill -HUP $$", Exit{Code: -1, Signal: "SIGHUP"}},
	} {
		got := wait(t, start(t, t.Context(), shell(test.script)))
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q: exit differs (-want +got):\n%s", test.script, diff)
		}
	}
}

func TestStreams(t *testing.T) {
	var out, errs bytes.Buffer
	c := shell("cat; echo oops >&2")
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader("in\n"), &out, &errs
	wait(t, start(t, t.Context(), c))
	if out.String() != "in\n" || errs.String() != "oops\n" {
		t.Errorf("stdout %q, stderr %q, want %q and %q", &out, &errs, "in\n", "oops\n")
	}
}

func TestOneWriterForBothStreams(t *testing.T) {
	var both bytes.Buffer
	c := shell("echo a; echo b >&2; echo c")
	c.Stdout, c.Stderr = &both, &both
	wait(t, start(t, t.Context(), c))
	if got, want := both.String(), "a\nb\nc\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

func TestEnvironmentIsOnlyWhatWasGiven(t *testing.T) {
	t.Setenv("PROC_TEST_SECRET", "leak")
	var out bytes.Buffer
	wait(t, start(t, t.Context(), Command{Argv: []string{"env"}, Env: []string{"A=1", nonceVariable + "=inherited"}, Nonce: "n", Stdout: &out}))
	if got, want := out.String(), "A=1\n"+nonceVariable+"=n\n"; got != want {
		t.Errorf("environment %q, want %q", got, want)
	}
	out.Reset()
	wait(t, start(t, t.Context(), Command{Argv: []string{"env"}, Stdout: &out}))
	if out.Len() != 0 {
		t.Errorf("environment %q without Env, want none", &out)
	}
}

func TestStartFails(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	errGone := errors.New("gone")
	cancel(errGone)
	for _, test := range []struct {
		name string
		ctx  context.Context
		argv []string
		want error
	}{
		{"no program", t.Context(), []string{"/does/not/exist"}, os.ErrNotExist},
		{"context over", ended, []string{"true"}, errGone},
		{"no argv", t.Context(), nil, nil},
	} {
		p, err := Start(test.ctx, Command{Argv: test.argv, Stdin: strings.NewReader(""), Stdout: io.Discard})
		if err == nil || p != nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: Start = %v, %v; want error %v", test.name, p, err, test.want)
		}
	}
}

func TestStartInADirectoryThatIsGone(t *testing.T) {
	c := shell("true")
	c.Dir = filepath.Join(t.TempDir(), "gone")
	if _, err := Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "working directory: stat "+c.Dir) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a command in a directory that is gone: %v", err)
	}
}

func TestCancelEndsTheGroup(t *testing.T) {
	errCause := errors.New("the reason")
	for _, test := range []struct {
		name, script, signal string
	}{
		{"obedient", "sleep 600 & echo ready >&2; wait", "SIGTERM"},
		{"ignores TERM", "trap '' TERM; sleep 600 & echo ready >&2; while :; do wait; done", "SIGKILL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			w := newWitness(t)
			c := shell(test.script)
			c.Stderr, c.Grace = w.end, 100*time.Millisecond
			p := start(t, ctx, c)
			w.release()
			w.line(t)

			cancel(errCause)
			want := Exit{Code: -1, Signal: test.signal, Cause: errCause}
			if diff := cmp.Diff(want, wait(t, p), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("exit differs (-want +got):\n%s", diff)
			}
			if !w.allDead(time.Minute) {
				t.Error("a member of the group is alive after Wait")
			}
		})
	}
}

func TestStopLeavesTimeToCleanUp(t *testing.T) {
	w := newWitness(t)
	c := shell("trap 'exit 3' TERM; echo ready >&2; while :; do sleep 0.01; done")
	c.Stderr = w.end
	p := start(t, t.Context(), c)
	w.line(t)
	p.Stop(nil)
	p.Stop(errors.New("too late"))
	if got := wait(t, p); got.Code != 3 || got.Cause != errStopped {
		t.Errorf("exit %+v, want code 3 and cause %q", got, errStopped)
	}
}

func TestGroupDiesWithItsLeader(t *testing.T) {
	w := newWitness(t)
	var out bytes.Buffer
	c := shell("trap '' TERM; sleep 600 & echo started; exit 4")
	c.Stdout, c.Stderr, c.Drain = &out, w.end, time.Minute
	began := time.Now()
	got := wait(t, start(t, t.Context(), c))
	w.release()
	if want := (Exit{Code: 4}); got != want || out.String() != "started\n" {
		t.Errorf("exit %+v with output %q, want %+v with %q", got, &out, want, "started\n")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("Wait took %s with a grandchild on stdout, want no drain delay", took)
	}
	if !w.allDead(time.Minute) {
		t.Error("the grandchild is alive after Wait")
	}
}

func TestStdinThatNeverEndsDoesNotHoldWait(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	c := shell("exit 0")
	c.Stdin, c.Drain = r, time.Minute
	wait(t, start(t, t.Context(), c))
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestFailedWriteDoesNotBlockTheChild(t *testing.T) {
	errFull := errors.New("full")
	c := shell("head -c 1000000 /dev/zero; exit 5")
	c.Stdout = failing{errFull}
	p := start(t, t.Context(), c)
	exit, err := p.Wait()
	if exit.Code != 5 || !errors.Is(err, errFull) {
		t.Errorf("Wait = %+v, %v; want code 5 and %v", exit, err, errFull)
	}
}

// slow delays each Write.
type slow struct{ taken int }

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(150 * time.Millisecond)
	s.taken += len(p)
	return len(p), nil
}

func TestOutputThatIsTakenSlowly(t *testing.T) {
	c := shell("head -c 60000 /dev/zero")
	var out slow
	c.Stdout, c.Drain = &out, 20*time.Millisecond
	exit := wait(t, start(t, t.Context(), c))
	if exit.Escaped || out.taken != 60000 {
		t.Errorf("runtime/K02 %d bytes of 60000 come, and the exit is %+v, though no process holds the pipe", out.taken, exit)
	}
}

func TestStopAfterTheExit(t *testing.T) {
	p := start(t, t.Context(), shell("sleep 600"))
	exited := make(chan struct{})
	close(exited)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if cause := endOn(over, group{leader: p.Pid()}, exited, nil, time.Minute); cause != nil {
			t.Fatalf("runtime/K02 a process that has exited is reported as stopped: %v", cause)
		}
	}
}
