package plugin_test

import (
	"context"
	"errors"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/turn"
)

// cells is a code executor that records the code it ran.
type cells struct {
	ran, kept string
	during    func()
}

func (c *cells) Execute(_ context.Context, call *plugin.CodeCall, _ plugin.CellHost) (turn.CellReply, error) {
	if call.Source == "crash" {
		panic("clumsy")
	}
	if c.during != nil {
		c.during()
	}
	c.ran += call.Source
	return turn.CellReply{Printed: c.ran}, nil
}

func (c *cells) Dirty() bool { return c.ran != c.kept }
func (c *cells) Stored()     { c.kept = c.ran }
func (c *cells) Snapshot(context.Context) (plugin.ExecutionChange, error) {
	return plugin.ExecutionChange{Changed: map[string][]byte{"ran": []byte(c.ran)}}, nil
}
func (c *cells) Restore(_ context.Context, values map[string][]byte) error {
	c.ran = string(values["ran"])
	c.kept = c.ran
	return nil
}

func TestExecutor(t *testing.T) {
	runs := func(e plugin.CodeExecutor) *plugin.Session {
		return open(t, with("p", func(r *plugin.Registrar) { r.Execution().Executor(e) }))
	}
	t.Run("plugin/PR-07 code runs only with an executor", func(t *testing.T) {
		if _, err := open(t).Execute(t.Context(), &plugin.CodeCall{}, nil); !errors.Is(err, plugin.ErrNoExecutor) {
			t.Errorf("error %v", err)
		}
		s := runs(&cells{})
		if got, err := s.Execute(t.Context(), &plugin.CodeCall{Source: "x"}, nil); err != nil || got.Printed != "x" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := s.Execute(t.Context(), &plugin.CodeCall{Source: "crash"}, nil); err == nil || err.Error() != "plugin p: code_executor: panicked: clumsy" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("plugin/PR-07 an executor need not keep state", func(t *testing.T) {
		for name, s := range map[string]*plugin.Session{"no executor": open(t), "a plain executor": runs(executor{})} {
			if x, err := s.CaptureExecution(t.Context()); x != nil || err != nil {
				t.Errorf("%s has state: %+v, %v", name, x, err)
			}
			if err := s.RestoreExecution(t.Context(), nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("plugin/PR-07 unsaved state is captured again, but not while a cell runs", func(t *testing.T) {
		c := &cells{ran: "x"}
		s := runs(c)
		for range 2 {
			if x, err := s.CaptureExecution(t.Context()); err != nil || string(x.Changed["ran"]) != "x" {
				t.Fatalf("captured %+v, %v", x, err)
			}
		}
		x, err := s.CaptureExecution(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x.Stored()
		if x, err := s.CaptureExecution(t.Context()); x != nil || err != nil {
			t.Errorf("captured again: %+v, %v", x, err)
		}
		c.during = func() { _, err = s.CaptureExecution(t.Context()) }
		if _, failed := s.Execute(t.Context(), &plugin.CodeCall{Source: "y"}, nil); failed != nil || err == nil {
			t.Errorf("captured in a cell: %v, %v", failed, err)
		}
	})
}
