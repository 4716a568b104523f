package tool

import (
	"errors"
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

func TestMembership(t *testing.T) {
	t.Run("plugin/TL-08 one change switches several tools in one generation", func(t *testing.T) {
		p := offers("1=a", "2=b", "3=c")
		r := registry(t, "p", p)
		must[protocol.ToolState](t)(r.SetMembership(1, map[string]bool{"a": false, "b": false, "c": true}))
		r.is(t, "2 1=a-out 2=b-out 3=c")
		must[protocol.ToolState](t)(r.SetMembership(2, map[string]bool{"a": true}))
		r.is(t, "3 1=a 2=b-out 3=c")
		p.tools = named("1=a", "2=b", "3=c", "4=d")
		ok(t, r.Refresh())
		r.is(t, "4 1=a 2=b-out 3=c 4=d")
		if got := names(r.Catalog()); got != "a c d" {
			t.Errorf("catalog %q", got)
		}
	})
	t.Run("plugin/TL-08 an unknown name fails, and nothing is applied", func(t *testing.T) {
		r := registry(t, "p", offers("a", "b"))
		for range 20 {
			_, err := r.SetMembership(1, map[string]bool{"a": false, "b": false, "x": false, "y": true})
			if !errors.Is(err, ErrUnknown) || err.Error() != `"x": unknown tool` {
				t.Fatalf("error %v", err)
			}
		}
		if _, err := r.SetMembership(0, map[string]bool{"a": false}); err == nil {
			t.Error("a stale generation is taken")
		}
		r.is(t, "1 a b")
	})
	t.Run("plugin/TL-08 orphans keep settings and accept new ones", func(t *testing.T) {
		p := offers("a")
		r := registry(t, "p", p)
		p.tools = nil
		ok(t, r.Refresh())
		must[protocol.ToolState](t)(r.SetMembership(2, map[string]bool{"a": false}))
		p.tools = named("a")
		ok(t, r.Refresh())
		r.is(t, "4 a-out")
	})
	t.Run("plugin/TL-08 a name means the provided tool, not an orphan", func(t *testing.T) {
		r := registry(t, "p", offers("2=a"))
		must[protocol.ToolState](t)(r.Apply(stateOf(1, "1=a-orphan", "2=a")))
		if rec := r.Catalog().Records(); rec[0].Member || !rec[1].Member {
			t.Errorf("records %+v", rec)
		}
		must[protocol.ToolState](t)(r.SetMembership(2, map[string]bool{"a": false}))
		r.is(t, "3 1=a-orphan 2=a-out")
	})
}

func TestAvailability(t *testing.T) {
	levels := []protocol.ToolAvailability{"off", "searchable", "callable", "showcased"}
	t.Run("plugin/TL-09 each level includes the lower ones", func(t *testing.T) {
		if !slices.Equal(ladder, levels) {
			t.Errorf("ladder %v", ladder)
		}
		r := registry(t, "p", offers("a"))
		for i, level := range levels {
			must[protocol.ToolState](t)(r.SetAvailability(int64(i+1), []string{"a"}, level))
			c := r.Catalog()
			rec := c.Records()[0]
			if _, in := c.Lookup("a"); in != (i >= 2) || rec.Member != in || rec.Document != (i >= 3) || rec.Availability != level {
				t.Errorf("%s: in the catalog %t, record %+v", level, in, rec)
			}
		}
	})
	t.Run("plugin/TL-09 an override is kept and can be removed", func(t *testing.T) {
		p := offers("a", "b")
		r := registry(t, "p", p)
		steps := []struct {
			name string
			do   func(generation int64) (protocol.ToolState, error)
			want string
		}{
			{"set", func(g int64) (protocol.ToolState, error) {
				return r.SetAvailability(g, []string{"a", "b"}, "searchable")
			}, "2 a-out-searchable b-out-searchable"},
			{"refresh", func(int64) (protocol.ToolState, error) { p.tools = named("a", "b", "c"); return r.State(), r.Refresh() }, "3 a-out-searchable b-out-searchable c"},
			{"cleared", func(g int64) (protocol.ToolState, error) { return r.SetAvailability(g, []string{"a"}, "") }, "4 a b-out-searchable c"},
			{"a member by force", func(g int64) (protocol.ToolState, error) {
				return r.SetMembership(g, map[string]bool{"b": true, "c": false})
			}, "5 a b c-out"},
			{"applied again", func(int64) (protocol.ToolState, error) { return r.Apply(r.State()) }, "6 a b c-out"},
		}
		for _, s := range steps {
			must[protocol.ToolState](t)(s.do(r.Generation()))
			if got := show(r.State()); got != s.want {
				t.Errorf("%s: %q, want %q", s.name, got, s.want)
			}
		}
	})
	t.Run("plugin/TL-09 an unknown level or name changes nothing", func(t *testing.T) {
		r := registry(t, "p", offers("a"))
		if _, err := r.SetAvailability(1, []string{"a"}, "maybe"); !errors.Is(err, ErrState) {
			t.Errorf("level: %v", err)
		}
		if _, err := r.SetAvailability(1, []string{"a", "x"}, "off"); !errors.Is(err, ErrUnknown) {
			t.Errorf("name: %v", err)
		}
		r.is(t, "1 a")
	})
}

func TestWithout(t *testing.T) {
	t.Run("issue/4-2 tools that are off at the start become members only by a change, also if registered later", func(t *testing.T) {
		r := NewRegistry(map[string]bool{"a": true, "late": true, "over": true}, nil, protocol.ToolState{})
		p := offers("a", "b")
		check := func(want ...string) {
			t.Helper()
			if got := r.Catalog().Names(); !slices.Equal(got, want) {
				t.Errorf("the catalog is %q, want %q", got, want)
			}
		}
		ok(t, r.Upsert("s", p))
		check("b")
		if _, err := r.SetMembership(r.Generation(), map[string]bool{"a": true}); err != nil {
			t.Fatal(err)
		}
		p.tools = named("a", "b", "late")
		ok(t, r.Upsert("s", p))
		check("a", "b")
		ok(t, r.UpsertOverlay("o", Source{ID: "client", Provider: offers("over")}))
		check("a", "b", "over")
		again := NewRegistry(map[string]bool{"a": true}, []Source{{ID: "s", Provider: p}}, r.State())
		if got := again.Catalog().Names(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("with what was saved the catalog is %q", got)
		}
	})
}
