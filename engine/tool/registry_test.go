package tool

import (
	"errors"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestUniqueness(t *testing.T) {
	t.Run("plugin/TL-02 a duplicate id or name is rejected, and the error names both plugins", func(t *testing.T) {
		for _, c := range []struct {
			name     string
			kit      *kit
			conflict ConflictError
		}{
			{"id inside", offers("i=b", "i=c"), ConflictError{"id", "i", "q", "q"}},
			{"name inside", offers("i=b", "j=b"), ConflictError{"name", "b", "q", "q"}},
			{"id across", offers("1=b"), ConflictError{"id", "1", "q", "p"}},
			{"name across", offers("2=a"), ConflictError{"name", "a", "q", "p"}},
		} {
			r := registry(t, "p", offers("1=a"))
			err := r.Upsert("q", c.kit)
			if got, ok := errors.AsType[*ConflictError](err); !ok || *got != c.conflict {
				t.Errorf("%s: error %v, want %v", c.name, err, &c.conflict)
			}
			if !strings.Contains(err.Error(), c.conflict.Source) || !strings.Contains(err.Error(), c.conflict.Other) {
				t.Errorf("%s: %q does not name both", c.name, err)
			}
			r.is(t, "1 1=a")
			refused := NewRegistry(nil, []Source{{"p", offers("1=a")}, {"q", c.kit}}, protocol.ToolState{})
			if got, ok := errors.AsType[*ConflictError](refused.Refused()); !ok || *got != c.conflict {
				t.Errorf("%s: opened with %v", c.name, refused.Refused())
			}
			refused.is(t, "1 1=a")
		}
	})
	t.Run("plugin/TL-02 a tool needs a name", func(t *testing.T) {
		if err := registry(t).Upsert("p", offers("i=")); !errors.Is(err, ErrState) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("plugin/TL-02 an orphan does not reserve its name", func(t *testing.T) {
		p := offers("1=a")
		r := registry(t, "p", p)
		p.tools = nil
		ok(t, r.Refresh())
		r.is(t, "2 1=a-orphan")
		ok(t, r.Upsert("q", offers("2=a")))
		r.is(t, "3 2=a")
	})
	t.Run("providers of one plugin are one source", func(t *testing.T) {
		r := registry(t, "p", offers("a"), "q", offers("c"), "p", offers("b"))
		r.is(t, "1 a b c")
		ok(t, r.Upsert("p"))
		r.is(t, "2 a-orphan b-orphan c")
	})
	t.Run("a provider that panics fails only its own source", func(t *testing.T) {
		r := registry(t, "p", offers("a"))
		if _, ok := errors.AsType[*PanicError](r.Upsert("q", &broken{})); !ok {
			t.Error("no PanicError")
		}
		r.is(t, "1 a")
	})
}

// broken is a provider whose Tools panics.
type broken struct{ kit }

func (*broken) Tools() []Tool { panic("broken") }

func TestGeneration(t *testing.T) {
	p := offers("a", "b")
	steps := []struct {
		name string
		do   func(*Registry) error
		want string
	}{
		{"fresh", func(*Registry) error { return nil }, "0"},
		{"first source", func(r *Registry) error { return r.Upsert("p", p) }, "1 a b"},
		{"the same again", func(r *Registry) error { return r.Upsert("p", p) }, "1 a b"},
		{"refresh of the same", (*Registry).Refresh, "1 a b"},
		{"another source", func(r *Registry) error { return r.Upsert("q", offers("c")) }, "2 a b c"},
		{"membership", func(r *Registry) error {
			_, err := r.SetMembership(2, map[string]bool{"a": false, "c": false})
			return err
		}, "3 a-out b c-out"},
		{"a new tool", func(r *Registry) error { p.tools = named("a", "b", "d"); return r.Refresh() }, "4 a-out b c-out d"},
		{"tools that went", func(r *Registry) error { p.tools = named("b"); return r.Refresh() }, "5 a-out-orphan b c-out d-orphan"},
		{"a changed manifest", func(r *Registry) error { p.tools[0].Manifest.Description = "new"; return r.Refresh() }, "6 a-out-orphan b c-out d-orphan"},
		{"a changed contract", func(r *Registry) error { p.tools[0].Contract.Serial = true; return r.Refresh() }, "7 a-out-orphan b c-out d-orphan"},
		{"overlay", func(r *Registry) error { return r.UpsertOverlay("context", Source{"me", offers("b")}) }, "8 a-out-orphan b c-out d-orphan"},
		{"state", func(r *Registry) error { _, err := r.Apply(stateOf(8, "c")); return err }, "9 c"},
		{"a source without providers", func(r *Registry) error { return r.Upsert("q") }, "10 c-orphan"},
	}
	t.Run("plugin/TL-03 the generation starts at 0 and grows by one with each change", func(t *testing.T) {
		r := NewRegistry(nil, nil, protocol.ToolState{})
		for _, s := range steps {
			ok(t, s.do(r))
			if got := show(r.State()); got != s.want {
				t.Fatalf("%s: state %q, want %q", s.name, got, s.want)
			}
		}
	})
	t.Run("plugin/TL-03 the initial sources of a registry are one change", func(t *testing.T) {
		registry(t, "p", offers("a"), "q", offers("b")).is(t, "1 a b")
	})
	t.Run("a change can be rolled back", func(t *testing.T) {
		r := registry(t, "p", offers("a"))
		before := r.Checkpoint()
		must[protocol.ToolState](t)(r.SetMembership(1, map[string]bool{"a": false}))
		r.Rollback(before)
		r.is(t, "1 a")
	})
	t.Run("returned values are not shared", func(t *testing.T) {
		r := registry(t, "p", offers("a"))
		delete(r.State().Tools, "a")
		r.is(t, "1 a")
	})
}
