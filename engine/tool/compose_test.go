package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// counting returns a composer that counts how often its catalog is built.
func counting(base *Registry) (k *Composer, built func() int) {
	var n atomic.Int64
	return NewComposer(Composition{Base: base, Extra: func(c *Catalog) (any, error) {
		n.Add(1)
		return strings.Join(c.Names(), " "), nil
	}}), func() int { return int(n.Load()) }
}

// offer compares the tools of a composer's catalog.
func (k *Composer) offers(t *testing.T, want string) {
	t.Helper()
	if v := must[*View](t)(k.Catalog(0)); names(v.Catalog) != want || v.Extra != nil && v.Extra != want {
		t.Errorf("catalog %q beside %v, want %q", v.Names(), v.Extra, want)
	}
}

func TestOverlay(t *testing.T) {
	t.Run("plugin/TL-13 an overlay replaces tools with the same id or name until it is removed", func(t *testing.T) {
		mine := offers("1=x", "9=b", "8=z")
		for _, c := range []struct {
			overlay Overlay
			want    string
		}{
			{Overlay{}, "a b c"},
			{Overlay{Sources: []Source{{"me", mine}}}, "x c z b"},
			{Overlay{WithoutBase: true, Sources: []Source{{"me", mine}}}, "x z b"},
			{Overlay{WithoutBase: true}, ""},
			{Overlay{}, "a b c"},
		} {
			base := registry(t, "p", offers("1=a", "2=b", "3=c"))
			k, _ := counting(base)
			must[bool](t)(k.SetOverlay(c.overlay))
			k.offers(t, c.want)
			base.is(t, "1 1=a 2=b 3=c")
			must[bool](t)(k.SetOverlay(Overlay{}))
			k.offers(t, "a b c")
		}
	})
	t.Run("plugin/TL-13 an overlay's tool is a member although a tool with its id is off", func(t *testing.T) {
		base := registry(t, "p", offers("1=a"))
		must[protocol.ToolState](t)(base.SetMembership(1, map[string]bool{"a": false}))
		k, _ := counting(base)
		must[bool](t)(k.SetOverlay(Overlay{Sources: []Source{{"me", offers("1=x")}}}))
		k.offers(t, "x")
	})
	t.Run("plugin/TL-13 contracts of an overlay are cached while it is set", func(t *testing.T) {
		l := lazily("a")
		k, _ := counting(registry(t))
		must[bool](t)(k.SetOverlay(Overlay{Sources: []Source{{"me", l}}}))
		for range 2 {
			must[*View](t)(k.Catalog(0)).Manifests()
			ok(t, k.Recompose())
		}
		if l.made["a"] != 1 {
			t.Errorf("made %d times", l.made["a"])
		}
	})
	t.Run("plugin/TL-13 calls go to the overlay while it is set", func(t *testing.T) {
		base, mine := offers("a"), offers("a")
		k, _ := counting(registry(t, "p", base))
		for _, o := range []Overlay{{Sources: []Source{{"me", mine}}}, {}} {
			must[bool](t)(k.SetOverlay(o))
			e, err := must[*View](t)(k.Catalog(0)).Admit("a", empty)
			ok(t, err)
			must[Result](t)(e.Execute(t.Context(), Invocation{}))
		}
		if len(base.ran) != 1 || len(mine.ran) != 1 {
			t.Errorf("base ran %d, overlay %d", len(base.ran), len(mine.ran))
		}
	})
	t.Run("plugin/TL-13 an overlay that cannot be composed leaves the old one in place", func(t *testing.T) {
		k, built := counting(registry(t, "p", offers("a")))
		must[bool](t)(k.SetOverlay(Overlay{Sources: []Source{{"me", offers("b")}}}))
		k.offers(t, "a b")
		if _, err := k.SetOverlay(Overlay{Sources: []Source{{"me", offers("c", "1=c")}}}); err == nil {
			t.Error("no error")
		}
		k.offers(t, "a b")
		if built() != 1 {
			t.Errorf("built %d times", built())
		}
	})
}

func TestBase(t *testing.T) {
	t.Run("plugin/S-11 settings go to the base and reach the catalog at the next composition", func(t *testing.T) {
		base := registry(t, "p", offers("a", "b"))
		k, _ := counting(base)
		must[bool](t)(k.SetOverlay(Overlay{Sources: []Source{{"me", offers("mine")}}}))
		k.offers(t, "a b mine")
		state := must[protocol.ToolState](t)(k.Base().SetMembership(1, map[string]bool{"a": false}))
		k.offers(t, "a b mine")
		ok(t, k.Recompose())
		k.offers(t, "b mine")
		if state.Generation != 2 || k.Base().Generation() != 2 || show(k.Base().State()) != "2 a-out b" {
			t.Errorf("generation %d, base %q", state.Generation, show(k.Base().State()))
		}
		if next := must[protocol.ToolState](t)(base.Apply(state)); next.Generation != 3 {
			t.Errorf("next generation %d", next.Generation)
		}
		if _, err := base.SetMembership(3, map[string]bool{"mine": false}); !errors.Is(err, ErrUnknown) {
			t.Errorf("a tool of the overlay is in the base: %v", err)
		}
	})
	t.Run("plugin/S-11 two changes with the same generation number are distinguished", func(t *testing.T) {
		base := registry(t, "p", &deep{kit: *offers("a"), below: named("d")})
		k, _ := counting(base)
		must[protocol.ToolManifest](t)(k.Composed().ResolveName("d"))
		k.offers(t, "a d")
		must[protocol.ToolState](t)(base.SetMembership(1, map[string]bool{"a": false}))
		ok(t, k.Recompose())
		k.offers(t, "")
	})
	t.Run("a refresh asks the sources again", func(t *testing.T) {
		p, mine := offers("a"), offers("m")
		k, _ := counting(registry(t, "p", p))
		must[bool](t)(k.SetOverlay(Overlay{Sources: []Source{{"me", mine}}}))
		p.tools, mine.tools = named("b"), named("n")
		k.offers(t, "a m")
		ok(t, k.Refresh())
		k.offers(t, "b n")
		k.Base().is(t, "2 a-orphan b")
	})
}

func TestCache(t *testing.T) {
	d := &deep{kit: *offers("a"), below: named("d")}
	mine := Overlay{Sources: []Source{{"me", offers("m")}}}
	t.Run("plugin/TL-16 a catalog is rebuilt when its key changes or it is invalidated", func(t *testing.T) {
		base := registry(t, "p", d)
		k, built := counting(base)
		plugins := uint64(1)
		for _, c := range []struct {
			name   string
			change func() error
			builds int
		}{
			{"first", func() error { return nil }, 1},
			{"nothing", func() error { return nil }, 0},
			{"plugins", func() error { plugins++; return nil }, 1},
			{"overlay", func() error { _, err := k.SetOverlay(mine); return err }, 1},
			{"without base", func() error { _, err := k.SetOverlay(Overlay{WithoutBase: true, Sources: mine.Sources}); return err }, 1},
			{"with it again", func() error { _, err := k.SetOverlay(mine); return err }, 1},
			{"composed registry", func() error { _, err := k.Composed().SetMembership(k.Composed().Generation(), nil); return err }, 1},
			{"base, not composed", func() error { _, err := base.SetMembership(base.Generation(), nil); return err }, 0},
			{"composed", func() error { return k.Recompose() }, 1},
			{"refresh", func() error { return k.Refresh() }, 1},
			{"invalidated", func() error { k.Invalidate(); return nil }, 1},
		} {
			before := built()
			ok(t, c.change())
			for range 3 {
				must[*View](t)(k.Catalog(plugins))
			}
			if got := built() - before; got != c.builds {
				t.Errorf("%s: built %d times, want %d", c.name, got, c.builds)
			}
		}
	})
	t.Run("issue/4-2 a catalog that holds for now only is rebuilt at the next request, and no other is", func(t *testing.T) {
		forNow, asked := true, 0
		leave := func(Listing) ([]string, error) {
			if asked++; forNow {
				return []string{"a"}, ErrForNow
			}
			return []string{"b"}, nil
		}
		k := NewComposer(Composition{Base: registry(t, "p", offers("a", "b", "c")), Rules: Rules{Contributors: []Contributor{leave}}})
		k.offers(t, "b c")
		k.offers(t, "b c")
		forNow = false
		k.offers(t, "a c")
		k.offers(t, "a c")
		if asked != 3 {
			t.Errorf("it was asked %d times", asked)
		}
	})
	t.Run("plugin/S-09 resolving a tool rebuilds the catalog, and a grant does not", func(t *testing.T) {
		g := &granting{kit: *offers("g")}
		k, built := counting(registry(t, "p", d, "q", g))
		k.offers(t, "a g")
		grant := Grant{Manifest: named("9=x")[0].Manifest, Source: "q"}
		must[Result](t)(k.Composed().ExecuteGranted(t.Context(), grant, Invocation{Args: empty}))
		k.offers(t, "a g")
		if built() != 1 || k.Composed().Generation() != 1 {
			t.Errorf("after a grant: built %d times, generation %d", built(), k.Composed().Generation())
		}
		must[protocol.ToolManifest](t)(k.Composed().ResolveName("d"))
		k.offers(t, "a d g")
		if built() != 2 || k.Composed().Generation() != 2 {
			t.Errorf("after a lookup: built %d times, generation %d", built(), k.Composed().Generation())
		}
	})
	t.Run("plugin/TL-16 overlays are compared by their providers and the order of these", func(t *testing.T) {
		k, _ := counting(registry(t))
		if got := k.Composed().Generation(); got != 1 {
			t.Errorf("composed generation %d", got)
		}
		m, n := offers("m"), offers("n")
		for _, c := range []struct {
			overlay Overlay
			changed bool
		}{
			{Overlay{}, false}, {Overlay{Sources: []Source{{"me", m}, {"me", n}}}, true}, {Overlay{Sources: []Source{{"me", m}, {"me", n}}}, false},
			{Overlay{Sources: []Source{{"me", n}, {"me", m}}}, true}, {Overlay{Sources: []Source{{"me", offers("n")}, {"me", m}}}, true},
		} {
			before := k.revision
			if got := must[bool](t)(k.SetOverlay(c.overlay)); got != c.changed || k.revision-before != map[bool]uint64{true: 1}[got] {
				t.Errorf("%+v: changed %t, revision %d after %d", c.overlay, got, k.revision, before)
			}
		}
	})
	t.Run("plugin/TL-16 errors and panics are not cached, and concurrent callers share one build", func(t *testing.T) {
		n, running := 0, 0
		k := NewComposer(Composition{Base: registry(t, "p", d), Extra: func(*Catalog) (any, error) {
			n++
			running++
			defer func() { running-- }()
			switch {
			case running > 1:
				t.Error("two at once")
			case n == 1:
				return nil, errors.New("failed")
			case n == 2:
				panic("failed")
			}
			return n, nil
		}})
		for range 2 {
			if _, err := k.Catalog(0); err == nil {
				t.Error("no error")
			}
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if v, err := k.Catalog(0); err != nil || v.Extra != 3 {
					t.Errorf("%+v, %v", v, err)
				}
			})
		}
		wg.Wait()
	})
	t.Run("a composer is safe for concurrent use", func(t *testing.T) {
		k, _ := counting(registry(t, "p", &kit{tools: many(20)}))
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 20 {
					v := must[*View](t)(k.Catalog(uint64(i)))
					if e, err := v.Admit("tool001", json.RawMessage(`{"path":"x"}`)); err != nil || e == nil {
						t.Errorf("call: %v", err)
					}
					v.Manifests()
					v.Records()
				}
			})
			wg.Go(func() {
				for range 5 {
					_, _ = k.Base().SetMembership(k.Base().Generation(), map[string]bool{fmt.Sprintf("tool%03d", 10+i): false})
					ok(t, k.Refresh())
				}
			})
		}
		wg.Wait()
	})
	t.Run("plugin/TL-16 runtime/Q06 a cached catalog is returned without allocations", func(t *testing.T) {
		k, _ := counting(registry(t, "p", &kit{tools: many(1000)}))
		must[*View](t)(k.Catalog(1)).Manifests()
		look := func() { must[*View](t)(k.Catalog(1)).Manifests() }
		if n := testing.AllocsPerRun(100, look); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// many returns n tools with schemas of typical size.
func many(n int) []Tool {
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("absolute ", 30) +
		`"},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`)
	var tools []Tool
	for i := range n {
		tools = append(tools, Tool{protocol.ToolManifest{
			Name: fmt.Sprintf("tool%03d", i), Description: strings.Repeat("Reads a file of the workspace. ", 6), Input: schema,
		}, protocol.ToolContract{Replay: protocol.ReplaySafe}})
	}
	return tools
}

// BenchmarkCatalog measures building a catalog of 1,000 tools with its manifests, and reading the cached one.
func BenchmarkCatalog(b *testing.B) {
	tools := &kit{tools: many(1000)}
	open := func() *Composer {
		k, _ := counting(NewRegistry(nil, []Source{{"p", tools}}, protocol.ToolState{}))
		return k
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			open()
		}
	})
	k := open()
	look := func() {
		if v, err := k.Catalog(1); err != nil || len(v.Manifests()) != 1000 {
			b.Fatal(err)
		}
	}
	var cold time.Duration
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.Invalidate()
			look()
		}
		cold = b.Elapsed() / time.Duration(b.N)
	})
	b.Run("cached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			look()
		}
		b.ReportMetric(float64(cold)/(float64(b.Elapsed())/float64(b.N)), "cold/cached")
	})
	b.Run("recompose", func(b *testing.B) {
		for b.Loop() {
			if err := k.Recompose(); err != nil {
				b.Fatal(err)
			}
			look()
		}
	})
}
