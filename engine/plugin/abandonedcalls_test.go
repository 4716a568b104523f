package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/turn"
)

// deaf is a plugin whose hooks and executor block while hold is set, even if their context is done.
type deaf struct {
	hold   chan struct{} // nil: nothing blocks
	closed bool
	state  int
}

func (d *deaf) wait() {
	if d.hold != nil {
		<-d.hold
	}
}

func (*deaf) ID() string                                         { return "p" }
func (d *deaf) Build(plugin.BuildContext) (plugin.Plugin, error) { return d, nil }
func (d *deaf) Close() error                                     { d.closed = true; return errBoom }
func (d *deaf) Register(r *plugin.Registrar) error {
	r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) { d.wait(); return nil, nil })
	r.Execution().Executor(d)
	return nil
}

func (d *deaf) Execute(context.Context, *plugin.CodeCall, plugin.CellHost) (turn.CellReply, error) {
	d.wait()
	return turn.CellReply{Printed: "ran"}, nil
}
func (d *deaf) Dirty() bool { return true }
func (d *deaf) Stored()     { d.wait() }
func (d *deaf) Snapshot(context.Context) (plugin.ExecutionChange, error) {
	return plugin.ExecutionChange{Changed: map[string][]byte{"x": nil}}, nil
}
func (d *deaf) Restore(context.Context, map[string][]byte) error { d.state++; return nil }

// opened opens a session with a plugin. It closes the session at the end unless the test has done so.
func (d *deaf) opened(t *testing.T) *plugin.Session {
	t.Helper()
	s, err := newHost(t, d).Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// leave fails unless err is a AbandonedError with the expected cause.
func leave(t *testing.T, what string, err, why error) {
	t.Helper()
	left, ok := errors.AsType[*plugin.AbandonedError](err)
	if !ok || left.Plugin != "p" || !errors.Is(err, why) {
		t.Errorf("%s: %v, want that p was left alone because of %v", what, err, why)
	}
}

func TestLeftAlone(t *testing.T) {
	bubble := func(name string, f func(*testing.T, *deaf)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, &deaf{}) }) })
	}
	within := func(t *testing.T, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeoutCause(t.Context(), d, errBoom)
		t.Cleanup(cancel)
		return ctx
	}
	bubble("plugin/HC-04 a hook that does not return is abandoned, and its plugin is closed after its last call returns", func(t *testing.T, d *deaf) {
		s := d.opened(t)
		if got := s.Abandoned(); got != nil {
			t.Errorf("at first %q are left alone", got)
		}
		var holds []chan struct{}
		for range 2 {
			synctest.Wait() // the previous call has read hold
			d.hold = make(chan struct{})
			holds = append(holds, d.hold)
			began := time.Now()
			_, err := s.BeforeTurn(within(t, time.Second), &plugin.TurnContext{})
			if leave(t, "the hook", err, errBoom); time.Since(began) != time.Second+50*time.Millisecond {
				t.Errorf("it was left alone after %v", time.Since(began))
			}
		}
		if got := s.Abandoned(); !slices.Equal(got, []string{"p"}) {
			t.Errorf("left alone are %q", got)
		}
		if err := s.Close(); err != nil || d.closed {
			t.Errorf("closed at once: %v, %t", err, d.closed)
		}
		close(holds[0])
		synctest.Wait()
		if d.closed {
			t.Error("it is closed while a call is out")
		}
		close(holds[1])
		synctest.Wait()
		if !d.closed || !slices.Equal(s.Abandoned(), []string{"p"}) {
			t.Errorf("after the last call: closed %t, left %q", d.closed, s.Abandoned())
		}
	})
	bubble("plugin/HC-04 a plugin without calls in progress is closed at once", func(t *testing.T, d *deaf) {
		s := d.opened(t)
		d.hold = make(chan struct{})
		_, _ = s.BeforeTurn(within(t, time.Second), &plugin.TurnContext{})
		close(d.hold)
		synctest.Wait()
		if err := s.Close(); !errors.Is(err, errBoom) || !d.closed {
			t.Errorf("closed %t, %v", d.closed, err)
		}
	})
	bubble("plugin/HC-04 a hook may take 30 minutes", func(t *testing.T, d *deaf) {
		s := d.opened(t)
		d.hold = make(chan struct{})
		began := time.Now()
		_, err := s.BeforeTurn(t.Context(), &plugin.TurnContext{})
		if failed, _ := errors.AsType[*plugin.HookError](err); failed == nil || !errors.Is(err, plugin.ErrSlowHook) || time.Since(began) != 30*time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		close(d.hold)
		_ = s.Close()
	})
	bubble("plugin/PR-07 an executor whose Stored does not return is abandoned and not used again", func(t *testing.T, d *deaf) {
		s := d.opened(t)
		x, err := s.CaptureExecution(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d.hold = make(chan struct{})
		x.Stored()
		began := time.Now()
		_, err = s.Execute(t.Context(), &plugin.CodeCall{}, nil)
		if leave(t, "a cell", err, plugin.ErrLate); time.Since(began) != 10*time.Second {
			t.Errorf("it was left alone after %v", time.Since(began))
		}
		began = time.Now()
		_, capture := s.CaptureExecution(t.Context())
		_, cell := s.Execute(t.Context(), &plugin.CodeCall{}, nil)
		for what, err := range map[string]error{"capture": capture, "a cell": cell, "restore": s.RestoreExecution(t.Context(), nil)} {
			if err == nil || err.Error() != "a code cell still runs" {
				t.Errorf("%s: %v", what, err)
			}
		}
		if d.state != 0 || time.Since(began) != 0 || !slices.Equal(s.Abandoned(), []string{"p"}) {
			t.Errorf("restored %d times, after %v, left %q", d.state, time.Since(began), s.Abandoned())
		}
		close(d.hold)
		_ = s.Close()
	})
	bubble("plugin/PR-07 a cell that outlives its turn is an abandoned call", func(t *testing.T, d *deaf) {
		s := d.opened(t)
		s.AbandonCell() // no cell runs
		if got := s.Abandoned(); got != nil {
			t.Errorf("without a cell %q are left alone", got)
		}
		d.hold = make(chan struct{})
		go func() { _, _ = s.Execute(t.Context(), &plugin.CodeCall{}, nil) }()
		synctest.Wait()
		if _, err := s.CaptureExecution(t.Context()); err == nil {
			t.Error("its state is captured while it runs")
		}
		s.AbandonCell()
		if got := s.Abandoned(); !slices.Equal(got, []string{"p"}) {
			t.Errorf("left alone are %q", got)
		}
		_ = s.Close()
		if d.closed {
			t.Error("it is closed while the cell runs")
		}
		close(d.hold)
		synctest.Wait()
		if !d.closed {
			t.Error("it is not closed after the cell")
		}
	})
	bubble("plugin/HC-04 a plugin whose Build does not return is abandoned, and the session id is free", func(t *testing.T, _ *deaf) {
		h := make(chan struct{})
		host := newHost(t, plugin.Builder("p", func(plugin.BuildContext) (plugin.Spec, error) {
			<-h
			return func(*plugin.Registrar) error { return nil }, nil
		}))
		_, err := host.Open(within(t, time.Second), "d", nil, plugin.BuildContext{SessionID: "s"})
		leave(t, "open", err, errBoom)
		if left, _ := errors.AsType[*plugin.AbandonedError](err); left != nil && left.Hook != plugin.HookBuild {
			t.Errorf("left alone at %s", left.Hook)
		}
		close(h)
		synctest.Wait()
		if s, err := host.Session("s"); err == nil {
			t.Errorf("there is the session %v", s)
		}
	})
}

// revising is a plugin whose Revision blocks while hold is set.
type revising struct{ deaf }

func (r *revising) Build(plugin.BuildContext) (plugin.Plugin, error) { return r, nil }
func (r *revising) Register(*plugin.Registrar) error                 { return nil }
func (r *revising) Revision() uint64                                 { r.wait(); return 1 }
func (r *revising) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	return raw(`1`), nil
}
func (r *revising) Restore(context.Context, plugin.Meta, *plugin.ArtifactReader) error { return nil }

func TestDeafRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &revising{}
		s, err := newHost(t, r).Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		before := printOf(t, s)
		r.hold = make(chan struct{})
		_, err = s.Fingerprint(t.Context())
		leave(t, "its revision", err, plugin.ErrLate)
		if again := printOf(t, s); again == before {
			t.Error("left alone it has no revision of its own")
		}
		done, cancel := context.WithCancelCause(t.Context())
		cancel(errBoom)
		if _, err := s.Fingerprint(done); !errors.Is(err, errBoom) {
			t.Errorf("without a plugin: %v", err)
		}
		close(r.hold)
		synctest.Wait()
		_ = s.Close()
	})
}
