package workgroup

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
)

func newGroup() (*Group, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return New(slog.New(slog.NewTextHandler(log, nil))), log
}

func TestTurns(t *testing.T) {
	t.Run("Turns counts running turns, and WaitTurns waits for them after Close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, _ := newGroup()
			if !g.GoTurn(func() { time.Sleep(time.Hour) }) {
				t.Fatal("a group that is open refuses a turn")
			}
			if n := g.Turns(); n != 1 {
				t.Errorf("%d turns, want 1", n)
			}
			began := time.Now()
			g.Close()
			g.WaitTurns()
			if took := time.Since(began); took != time.Hour {
				t.Errorf("waited %v, want 1h", took)
			}
			if n := g.Turns(); n != 0 {
				t.Errorf("%d turns after the wait, want 0", n)
			}
		})
	})
	t.Run("a closed group refuses turns and other new work", func(t *testing.T) {
		g, _ := newGroup()
		if g.Closed() {
			t.Error("a new group is closed")
		}
		g.Close()
		ran := false
		if g.GoTurn(func() { ran = true }) || g.IfOpen(func() { ran = true }) {
			t.Error("a closed group takes work")
		}
		g.WaitTurns()
		if ran || !g.Closed() || g.Turns() != 0 {
			t.Errorf("ran %v, closed %v, %d turns; want false, true, 0", ran, g.Closed(), g.Turns())
		}
	})
}

func TestWaitActors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGroup()
		began := time.Now()
		g.GoActor(func() {
			time.Sleep(time.Minute)
			g.GoActor(func() { time.Sleep(time.Minute) })
		})
		g.WaitActors()
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("waited %v, want 2m", took)
		}
	})
}

func TestWaitCalls(t *testing.T) {
	t.Run("returns when the last call returns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, log := newGroup()
			for n := range 3 {
				g.GoCall(func() { time.Sleep(time.Duration(n) * time.Second) })
			}
			began := time.Now()
			g.WaitCalls(time.Hour)
			if took := time.Since(began); took != 2*time.Second || log.Len() > 0 {
				t.Errorf("waited %v, want 2s; log %q", took, log)
			}
		})
	})
	t.Run("gives up after the limit, and logs how many calls do not return", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, log := newGroup()
			hang := make(chan struct{})
			defer close(hang)
			for range 2 {
				g.GoCall(func() { <-hang })
			}
			g.GoCall(func() { time.Sleep(time.Second) })
			began := time.Now()
			g.WaitCalls(6 * time.Second)
			if took := time.Since(began); took != 6*time.Second || !strings.Contains(log.String(), "calls=2") {
				t.Errorf("waited %v, want 6s; log %q, want calls=2", took, log)
			}
		})
	})
}

func TestCallPlugin(t *testing.T) {
	t.Run("returns what the call returns", func(t *testing.T) {
		g, _ := newGroup()
		want := errors.New("no")
		if v, err := CallPlugin(t.Context(), g, func(context.Context) (int, error) { return 7, want }); v != 7 || err != want {
			t.Errorf("got %d, %v; want 7, %v", v, err, want)
		}
	})
	t.Run("ends the context after ten seconds and abandons the call six seconds later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, _ := newGroup()
			hang := make(chan struct{})
			began := time.Now()
			told := make(chan time.Duration, 1)
			_, err := CallPlugin(t.Context(), g, func(ctx context.Context) (int, error) {
				<-ctx.Done()
				told <- time.Since(began)
				<-hang
				return 7, nil
			})
			if took := time.Since(began); !errors.Is(err, ErrSlowPlugin) || took != 16*time.Second {
				t.Errorf("%v after %v, want %v after 16s", err, took, ErrSlowPlugin)
			}
			if after := <-told; after != 10*time.Second {
				t.Errorf("the call is cancelled after %v, want 10s", after)
			}
			close(hang)
			g.WaitCalls(time.Hour)
		})
	})
	t.Run("returns the result of a call that ends in the grace after its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, _ := newGroup()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			v, err := CallPluginUntilDone(ctx, g, func(context.Context) (int, error) { time.Sleep(5 * time.Second); return 7, nil })
			if v != 7 || err != nil {
				t.Errorf("got %d, %v; want 7 without an error", v, err)
			}
		})
	})
	t.Run("converts a panic to an error and logs its stack", func(t *testing.T) {
		g, log := newGroup()
		_, err := CallPlugin(t.Context(), g, clumsy)
		if !errors.Is(err, ErrPanic) || err.Error() != "panic: oops" {
			t.Errorf("got %v, want panic: oops", err)
		}
		if !strings.Contains(log.String(), "workgroup.clumsy(") {
			t.Errorf("the log does not name the function that panicked: %s", log)
		}
	})
}

func clumsy(context.Context) (int, error) { panic("oops") }

// If the result is ready and ctx is done, select picks either at random.
func TestAwaitReturnsResultThatIsThere(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	t.Run("runtime/K02", func(t *testing.T) {
		for range 100 {
			done := make(chan result[bool], 1)
			done <- result[bool]{v: true}
			if v, err := await(over, done); !v || err != nil {
				t.Fatal("the result is lost")
			}
		}
	})
}

func TestRecovered(t *testing.T) {
	t.Run("a driver that does not return keeps its error", func(t *testing.T) {
		g, log := newGroup()
		left := &plugin.AbandonedError{}
		if err := g.Recovered("turn", "t1", left); err != error(left) {
			t.Errorf("got %v, want %v", err, left)
		}
		if got := log.String(); !strings.Contains(got, "plugin did not return") || !strings.Contains(got, "turn=t1") {
			t.Errorf("log %q", got)
		}
	})
	t.Run("the panic of a plugin is logged with the stack of the plugin", func(t *testing.T) {
		g, log := newGroup()
		thrown := &plugin.PanicError{Value: "oops", Stack: []byte("at line 7")}
		if err := g.Recovered("turn", "t1", thrown); err == nil || err.Error() != "panic: oops" {
			t.Errorf("got %v, want panic: oops", err)
		}
		g.LogPanic(thrown)
		g.LogPanic(errors.New("harmless"))
		g.LogPanic(nil)
		if got := strings.Count(log.String(), "at line 7"); got != 2 {
			t.Errorf("the stack is logged %d times, want 2: %s", got, log)
		}
		if strings.Contains(log.String(), "harmless") {
			t.Errorf("logged an error that is no panic: %s", log)
		}
	})
}
