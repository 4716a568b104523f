package tool

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

func TestApply(t *testing.T) {
	t.Run("plugin/TL-04 a state of another generation is rejected with both numbers", func(t *testing.T) {
		r := registry(t, "p", offers("a"))
		must[protocol.ToolState](t)(r.SetMembership(1, map[string]bool{"a": false}))
		for _, generation := range []int64{0, 1, 3} {
			_, err := r.Apply(stateOf(generation, "a"))
			if got, ok := errors.AsType[*GenerationError](err); !ok || *got != (GenerationError{generation, 2}) {
				t.Errorf("generation %d: error %v", generation, err)
			}
		}
		r.is(t, "2 a-out")
		if got := must[protocol.ToolState](t)(r.Apply(stateOf(2, "a"))); got.Generation != 3 {
			t.Errorf("returned generation %d", got.Generation)
		}
	})
	t.Run("plugin/TL-04 a stale state asks no source", func(t *testing.T) {
		d := &deep{}
		if _, err := registry(t, "p", d).Apply(stateOf(3, "x")); err == nil || d.asked != 0 {
			t.Errorf("error %v, asked %d times", err, d.asked)
		}
	})
	t.Run("plugin/TL-05 the state defines which tools exist", func(t *testing.T) {
		for _, c := range []struct{ name, want string }{
			{"left out", "2 a"}, {"refreshed", "3 a b c"},
		} {
			r := registry(t, "p", offers("a", "b", "c"))
			must[protocol.ToolState](t)(r.Apply(stateOf(1, "a")))
			if c.name == "refreshed" {
				ok(t, r.Refresh())
			}
			r.is(t, c.want)
		}
	})
	t.Run("plugin/TL-05 a tool without a provider is rejected unless the state marks it as an orphan", func(t *testing.T) {
		r := registry(t, "p", offers("a"))
		for _, c := range []struct {
			state protocol.ToolState
			err   error
		}{
			{stateOf(1, "a", "x"), ErrUnknown},
			{protocol.ToolState{Generation: 1, Tools: map[string]protocol.ToolSetting{"x": stateOf(1, "a").Tools["a"]}}, ErrState},
			{stateOf(1, "x="), ErrState},
		} {
			if _, err := r.Apply(c.state); !errors.Is(err, c.err) {
				t.Errorf("%s: error %v, want %v", show(c.state), err, c.err)
			}
			r.is(t, "1 a")
		}
		must[protocol.ToolState](t)(r.Apply(stateOf(1, "a-out", "x-out-orphan")))
		r.is(t, "2 a-out x-out-orphan")
	})
	t.Run("plugin/TL-05 the current manifest is used, not the stored one", func(t *testing.T) {
		r := registry(t, "p", offers("1=a"))
		must[protocol.ToolState](t)(r.Apply(stateOf(1, "1=old-orphan")))
		r.is(t, "2 1=a")
	})
	t.Run("plugin/TL-05 a tool that two sources have is rejected", func(t *testing.T) {
		p, q := &deep{below: named("1=a")}, &deep{below: named("1=b")}
		r := registry(t, "p", p, "q", q)
		_, err := r.Apply(stateOf(0, "1=a"))
		if _, ok := errors.AsType[*ConflictError](err); !ok {
			t.Errorf("error %v", err)
		}
	})
	t.Run("plugin/TL-05 two tools with the same name are rejected", func(t *testing.T) {
		r := registry(t, "p", &deep{below: named("1=a", "2=a")})
		if _, err := r.Apply(stateOf(0, "1=a", "2=a")); !errors.Is(err, ErrState) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("plugin/TL-05 an unlisted tool is found by its id", func(t *testing.T) {
		r := registry(t, "p", &deep{below: named("1=a")})
		must[protocol.ToolState](t)(r.Apply(stateOf(0, "1=a-out")))
		r.is(t, "1 1=a-out")
		ok(t, r.Refresh())
		r.is(t, "1 1=a-out")
	})
	t.Run("the stored form omits sources and default values", func(t *testing.T) {
		p := offers("b", "a")
		r := registry(t, "p", p)
		must[protocol.ToolState](t)(r.SetAvailability(1, []string{"a"}, protocol.ToolSearchable))
		p.tools = p.tools[:1]
		p.tools[0].Manifest.Input = json.RawMessage(`{"type":"object"}`)
		ok(t, r.Refresh())
		got, err := json.Marshal(r.State())
		want := `{"generation":3,"tools":{` +
			`"a":{"manifest":{"id":"a","name":"a","description":"does a"},"orphaned":true,"member":false,"override":"searchable"},` +
			`"b":{"manifest":{"id":"b","name":"b","description":"does b"}}}}`
		if err != nil || string(got) != want {
			t.Errorf("%v\n%s, want\n%s", err, got, want)
		}
	})
}

func TestRestore(t *testing.T) {
	t.Run("plugin/TL-06 restoring reports missing tools and counts a difference once", func(t *testing.T) {
		for _, c := range []struct {
			name     string
			saved    protocol.ToolState
			orphaned []string
			want     string
		}{
			{"the same", stateOf(7, "a", "b"), nil, "7 a b"},
			{"settings", stateOf(7, "a-out", "b"), nil, "7 a-out b"},
			{"a new tool", stateOf(7, "a-out"), nil, "8 a-out b"},
			{"tools that went", stateOf(7, "a", "y-out", "b", "x"), []string{"x", "y"}, "8 a b x-orphan y-out-orphan"},
			{"known orphan", stateOf(7, "a", "b", "x-orphan"), []string{"x"}, "7 a b x-orphan"},
			{"another id", stateOf(7, "1=a-out", "b"), nil, "8 a b"},
			{"older, the same", stateOf(0, "a", "b"), nil, "1 a b"},
			{"older, other", stateOf(0, "a-out", "b"), nil, "2 a-out b"},
			{"as old, other", stateOf(1, "a-out", "b"), nil, "2 a-out b"},
			{"nothing", protocol.ToolState{}, nil, "1 a b"},
		} {
			r := registry(t, "p", offers("a", "b"))
			report := r.Restore(c.saved)
			if got := show(r.State()); got != c.want || report.Generation != r.Generation() || !slices.Equal(report.Orphaned, c.orphaned) {
				t.Errorf("%s: state %q with orphans %q, want %q with %q", c.name, got, report.Orphaned, c.want, c.orphaned)
			}
		}
	})
	t.Run("plugin/TL-06 an unlisted tool is found by its id", func(t *testing.T) {
		r := registry(t, "p", &deep{below: named("1=a")})
		r.Restore(stateOf(5, "1=a-out"))
		r.is(t, "5 1=a-out")
	})
	t.Run("plugin/TL-06 a reopened registry equals the saved one", func(t *testing.T) {
		p := offers("a", "b", "c")
		r := registry(t, "p", p)
		must[protocol.ToolState](t)(r.SetMembership(1, map[string]bool{"a": false}))
		must[protocol.ToolState](t)(r.SetAvailability(2, []string{"b"}, protocol.ToolCallable))
		text, err := json.Marshal(r.State())
		ok(t, err)
		var saved protocol.ToolState
		ok(t, json.Unmarshal(text, &saved))
		NewRegistry(nil, []Source{{"p", p}}, saved).is(t, "3 a-out b-callable c")
	})
}

func TestOrphans(t *testing.T) {
	t.Run("plugin/TL-07 an orphan comes back by its id with its settings, and a tool with only its name is different", func(t *testing.T) {
		for _, c := range []struct{ name, back, want string }{
			{"same id", "1=a", "4 1=a-out"}, {"same id, other name", "1=z", "4 1=z-out"}, {"same name", "2=a", "4 2=a"},
		} {
			p := offers("1=a")
			r := registry(t, "p", p)
			must[protocol.ToolState](t)(r.SetMembership(1, map[string]bool{"a": false}))
			p.tools = nil
			ok(t, r.Refresh())
			r.is(t, "3 1=a-out-orphan")
			ok(t, r.Upsert("q", offers(c.back)))
			if got := show(r.State()); got != c.want {
				t.Errorf("%s by upsert: %q, want %q", c.name, got, c.want)
			}
		}
	})
	t.Run("plugin/TL-07 a lookup brings an orphan back", func(t *testing.T) {
		for _, c := range []struct{ name, back, want string }{
			{"same id", "1=z", "6 1=z-out"}, {"same name", "2=a", "6 2=a"},
		} {
			d := &deep{}
			r := registry(t, "p", d)
			r.Restore(stateOf(5, "1=a-out-orphan"))
			r.is(t, "5 1=a-out-orphan")
			d.below = named(c.back)
			if c.name == "same id" {
				must[protocol.ToolManifest](t)(r.ResolveID("1"))
			} else {
				must[protocol.ToolManifest](t)(r.ResolveName("a"))
			}
			if got := show(r.State()); got != c.want {
				t.Errorf("%s by lookup: %q, want %q", c.name, got, c.want)
			}
		}
	})
	t.Run("plugin/TL-07 an orphan is in no catalog, and its record has its last manifest", func(t *testing.T) {
		r := registry(t, "p", offers("b"))
		r.Restore(stateOf(5, "b", "a"))
		c := r.Catalog()
		if got := names(c); got != "b" {
			t.Errorf("catalog %q", got)
		}
		if o := c.Records()[0]; o.Name != "a" || !o.Orphan || o.Member || o.Document || o.Source != "" {
			t.Errorf("record %+v", o)
		}
	})
}
