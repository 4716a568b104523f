package tool

import (
	"errors"
	"sync"
	"testing"

	"lashd/rpc/protocol"
)

func TestResolve(t *testing.T) {
	t.Run("plugin/TL-10 an unlisted tool is found by name and registered in one change", func(t *testing.T) {
		d := &deep{below: named("1=a")}
		r := registry(t, "p", offers("b"), "q", d)
		for range 3 {
			if m := must[protocol.ToolManifest](t)(r.ResolveName("a")); m.ID != "1" {
				t.Errorf("found %+v", m)
			}
		}
		r.is(t, "2 1=a b")
		if d.asked != 1 {
			t.Errorf("asked %d times", d.asked)
		}
		ok(t, r.Refresh())
		r.is(t, "2 1=a b")
		d.below = nil
		ok(t, r.Refresh())
		r.is(t, "3 1=a-orphan b")
	})
	t.Run("plugin/TL-10 concurrent lookups register the tool once", func(t *testing.T) {
		const many = 8
		s := &slow{}
		s.here.Add(many)
		r := registry(t, "p", s)
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() {
				if _, err := r.ResolveID("1"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		r.is(t, "1 1=a")
	})
	t.Run("plugin/TL-10 a tool that a state removed is found again in its source", func(t *testing.T) {
		r := registry(t, "p", offers("1=a", "b"))
		must[protocol.ToolState](t)(r.Apply(stateOf(1)))
		must[protocol.ToolManifest](t)(r.ResolveName("a"))
		r.is(t, "3 1=a")
	})
	t.Run("plugin/TL-10 a known tool is found without a change", func(t *testing.T) {
		r := registry(t, "p", offers("1=a"))
		must[protocol.ToolState](t)(r.SetMembership(1, map[string]bool{"a": false}))
		must[protocol.ToolManifest](t)(r.ResolveName("a"))
		must[protocol.ToolManifest](t)(r.ResolveID("1"))
		r.is(t, "2 1=a-out")
	})
	t.Run("plugin/TL-10 a tool that no source or several sources have is an error", func(t *testing.T) {
		p, q := &deep{below: named("1=a", "2=b")}, &deep{kit: *offers("3=b"), below: named("4=a", "5=b")}
		r := registry(t, "p", p, "q", q)
		if _, err := r.ResolveName("x"); !errors.Is(err, ErrUnknown) {
			t.Errorf("unknown: %v", err)
		}
		for name, look := range map[string]func() (protocol.ToolManifest, error){
			"two sources":   func() (protocol.ToolManifest, error) { return r.ResolveName("a") },
			"name is taken": func() (protocol.ToolManifest, error) { return r.ResolveID("2") },
			"by a sibling":  func() (protocol.ToolManifest, error) { return r.ResolveID("5") },
		} {
			_, err := look()
			if _, ok := errors.AsType[*ConflictError](err); !ok {
				t.Errorf("%s: %v", name, err)
			}
		}
		r.is(t, "1 3=b")
	})
}

// slow has an unlisted tool and returns it only after all callers have asked.
type slow struct {
	kit
	here sync.WaitGroup
}

func (s *slow) ResolveName(string) (Tool, bool) { return Tool{}, false }
func (s *slow) ResolveID(string) (Tool, bool) {
	s.here.Done()
	s.here.Wait()
	return named("1=a")[0], true
}

func TestHidden(t *testing.T) {
	d := &deep{kit: *offers("1=a", "b"), below: named("3=c", "1=a")}
	hidden := func(t *testing.T) *Registry {
		r := registry(t, "p", d)
		r.Hide("a", "c")
		return r
	}
	for name, bring := range map[string]func(*Registry) error{
		"refresh":  (*Registry).Refresh,
		"upsert":   func(r *Registry) error { return r.Upsert("p", d) },
		"another":  func(r *Registry) error { return r.Upsert("q", offers("9=a")) },
		"its id":   func(r *Registry) error { return r.Upsert("q", offers("b=a")) },
		"overlay":  func(r *Registry) error { return r.UpsertOverlay("context", Source{"me", offers("9=a", "b=c")}) },
		"restored": func(r *Registry) error { r.Restore(stateOf(2, "1=a", "3=c-orphan", "b")); return nil },
		"applied":  func(r *Registry) error { _, err := r.Apply(stateOf(2, "1=a", "3=c", "b")); return err },
	} {
		t.Run("plugin/S-15 a hidden tool stays hidden: "+name, func(t *testing.T) {
			r := hidden(t)
			ok(t, bring(r))
			ok(t, r.Refresh())
			for _, r := range []*Registry{r, r.copy(), r.only([]string{"p"})} {
				if got := names(r.Catalog()); got != "b" || len(r.State().Tools) != 1 {
					t.Errorf("catalog %q of %q", got, show(r.State()))
				}
			}
		})
	}
	t.Run("plugin/S-15 a hidden tool stays hidden: looked up", func(t *testing.T) {
		r := hidden(t)
		for _, look := range []func() (protocol.ToolManifest, error){
			func() (protocol.ToolManifest, error) { return r.ResolveName("a") },
			func() (protocol.ToolManifest, error) { return r.ResolveID("1") },
			func() (protocol.ToolManifest, error) { return r.ResolveName("c") },
		} {
			if _, err := look(); !errors.Is(err, ErrUnknown) {
				t.Errorf("error %v", err)
			}
		}
		r.is(t, "2 b")
	})
	t.Run("plugin/S-15 a hidden tool stays hidden: granted, or by a reopened grandchild with an overlay and contributors", func(t *testing.T) {
		r := hidden(t)
		_, err := r.ExecuteGranted(t.Context(), Grant{Manifest: named("7=a")[0].Manifest, Source: "p"}, Invocation{Args: empty})
		if !errors.Is(err, ErrHidden) {
			t.Errorf("grant: %v", err)
		}
		reopened := NewRegistry(nil, []Source{{"p", d}}, r.State())
		access := Access{Tools: append(named("1=a", "b"), named("3=c")...), Hidden: []string{"a", "c"}}
		k := NewComposer(Composition{Base: reopened, Rules: Rules{Access: access}})
		must[bool](t)(k.SetOverlay(Overlay{Sources: []Source{{"me", offers("9=a", "8=c")}}}))
		ok(t, k.Refresh())
		v := must[*View](t)(k.Catalog(0))
		if got := names(v.Catalog); got != "b" || len(k.Base().State().Tools) != 1 {
			t.Errorf("catalog %q, base %q", got, show(k.Base().State()))
		}
		must[bool](t)(k.SetOverlay(Overlay{WithoutBase: true, Sources: []Source{{"me", offers("9=a", "z")}}}))
		if got := names(k.Composed().Catalog()); got != "z" {
			t.Errorf("without the base: %q", got)
		}
		if _, err := v.Admit("a", empty); !errors.Is(err, ErrUnknown) {
			t.Errorf("call: %v", err)
		}
	})
}
