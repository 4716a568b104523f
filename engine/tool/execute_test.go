package tool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

var empty = json.RawMessage(`{}`)

// granting is a kit that accepts grants.
type granting struct {
	kit
	bindings []string
}

func (g *granting) ExecuteGranted(_ context.Context, call Invocation, binding json.RawMessage) (Result, error) {
	g.bindings = append(g.bindings, call.ToolID+" "+string(binding))
	return Result{Output: protocol.Succeed("granted")}, nil
}

// preparing is a kit that changes calls.
type preparing struct {
	granting
	change func(Invocation) Invocation
}

func (p *preparing) Prepare(_ context.Context, call Invocation) (Invocation, error) {
	return p.change(call), nil
}

func TestExecute(t *testing.T) {
	p := offers("1=a", "2=b", "3=c")
	r := registry(t, "p", p)
	must[protocol.ToolState](t)(r.SetMembership(1, map[string]bool{"b": false, "c": false}))
	r.Restore(stateOf(2, "1=a", "2=b-out", "3=c-out", "4=d-orphan", "5=e-out-orphan"))

	t.Run("plugin/TL-11 calls are rejected for distinct reasons, checked in order", func(t *testing.T) {
		seen := map[string]bool{}
		for _, c := range []struct {
			id  string
			err error
		}{{"9", ErrUnknown}, {"a", ErrUnknown}, {"2", ErrNotMember}, {"5", ErrNotMember}, {"4", ErrOrphan}} {
			_, err := r.Execute(t.Context(), c.id, Invocation{Args: empty})
			refused, ok := errors.AsType[*CallError](err)
			if !ok || !errors.Is(err, c.err) || refused.Code != "tool_unavailable" {
				t.Errorf("%s: error %v, want %v", c.id, err, c.err)
			}
			seen[errors.Unwrap(err).Error()] = true
		}
		if len(seen) != 3 || len(p.ran) != 0 {
			t.Errorf("messages %v; ran %v", seen, p.ran)
		}
	})
	t.Run("plugin/TL-11 a missing source is a separate reason", func(t *testing.T) {
		broken := registry(t, "p", offers("1=a"))
		delete(broken.now.Load().sources, "p")
		if _, err := broken.Execute(t.Context(), "1", Invocation{}); !errors.Is(err, ErrNoSource) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a call goes to its tool by id", func(t *testing.T) {
		got, err := r.Execute(t.Context(), "1", Invocation{Name: "alias", Args: empty})
		if err != nil || got.Output.Text != "ran 1" || p.ran[0].ToolID != "1" || p.ran[0].Name != "a" {
			t.Errorf("%+v, %v; ran %+v", got, err, p.ran)
		}
	})
	t.Run("plugin/TL-18 a prepared call keeps its tool", func(t *testing.T) {
		prep := &preparing{granting: granting{kit: *offers("1=a")}, change: func(c Invocation) Invocation {
			c.Args = json.RawMessage(`{"n":1}`)
			return c
		}}
		r := registry(t, "p", prep)
		e, _ := r.Catalog().Lookup("a")
		grant := Grant{Manifest: named("1=a")[0].Manifest, Source: "p"}
		must[Result](t)(e.Execute(t.Context(), Invocation{Args: empty}))
		if got := string(prep.ran[0].Args); got != `{"n":1}` {
			t.Errorf("ran with %s", got)
		}
		prep.change = func(c Invocation) Invocation { c.ToolID = "other"; return c }
		for name, run := range map[string]func() (Result, error){
			"registry": func() (Result, error) { return r.Execute(t.Context(), "1", Invocation{Args: empty}) },
			"grant":    func() (Result, error) { return r.ExecuteGranted(t.Context(), grant, Invocation{Args: empty}) },
		} {
			_, err := run()
			if refused, ok := errors.AsType[*CallError](err); !ok || refused.Code != "prepared_tool_id_mismatch" {
				t.Errorf("%s: %v", name, err)
			}
		}
		got := must[Result](t)(e.Execute(t.Context(), Invocation{Args: empty}))
		if f := got.Output.Failure; f == nil || f.Code != "prepared_tool_id_mismatch" || len(prep.ran) != 1 || len(prep.bindings) != 0 {
			t.Errorf("entry: %+v, ran %+v", got, prep.ran)
		}
	})
}

func TestGrants(t *testing.T) {
	grant := func(word, source string) Grant {
		return Grant{
			Manifest: named(word)[0].Manifest, Source: source, Binding: json.RawMessage(`{"key":7}`),
			Contract: protocol.ToolContract{Input: json.RawMessage(`{"type":"object","required":["x"]}`)},
		}
	}
	args := json.RawMessage(`{"x":1}`)
	t.Run("plugin/TL-12 a grant runs an unlisted tool and does not change the registry", func(t *testing.T) {
		g := &granting{kit: *offers("1=a")}
		r := registry(t, "p", offers("2=b"), "q", g)
		before, _ := json.Marshal(r.State())
		got := must[Result](t)(r.ExecuteGranted(t.Context(), grant("9=secret", "q"), Invocation{Args: args}))
		if got.Output.Text != "granted" || !slices.Equal(g.bindings, []string{`9 {"key":7}`}) {
			t.Errorf("%+v; bindings %q", got, g.bindings)
		}
		if after, _ := json.Marshal(r.State()); string(after) != string(before) || r.Generation() != 1 {
			t.Errorf("state %s, was %s", after, before)
		}
	})
	t.Run("plugin/TL-12 a grant must name a registered source that accepts grants", func(t *testing.T) {
		r := registry(t, "p", offers("2=b"), "q", &granting{})
		for _, c := range []struct {
			source, args string
			err          error
			code         string
		}{
			{"", `{"x":1}`, ErrNoSource, CodeUnavailable}, {"none", `{"x":1}`, ErrNoSource, CodeUnavailable},
			{"p", `{"x":1}`, ErrNoGrant, CodeUnavailable}, {"plugins", `{"x":1}`, ErrNoSource, CodeUnavailable},
			{"q", `{}`, nil, CodeArgs},
		} {
			_, err := r.ExecuteGranted(t.Context(), grant("9=s", c.source), Invocation{Args: json.RawMessage(c.args)})
			refused, ok := errors.AsType[*CallError](err)
			if !ok || refused.Code != c.code || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("source %q: %v", c.source, err)
			}
		}
	})
	t.Run("plugin/TL-12 a grant goes to the provider of the tool, or to the only provider", func(t *testing.T) {
		p, q := &granting{kit: *offers("1=a")}, &granting{}
		r := registry(t, "p", p, "p", q)
		must[Result](t)(r.ExecuteGranted(t.Context(), grant("1=a", "p"), Invocation{Args: args}))
		if _, err := r.ExecuteGranted(t.Context(), grant("9=s", "p"), Invocation{Args: args}); !errors.Is(err, ErrNoGrant) || len(p.bindings) != 1 {
			t.Errorf("error %v, bindings %q", err, p.bindings)
		}
	})
	t.Run("plugin/TL-12 an old grant goes to the one plugin that has the tool", func(t *testing.T) {
		p, q := &granting{kit: *offers("1=a")}, &granting{kit: *offers("2=b")}
		r := registry(t, "p", p, "q", q)
		must[Result](t)(r.ExecuteGranted(t.Context(), grant("2=b", "plugins"), Invocation{Args: args}))
		if len(p.bindings) != 0 || len(q.bindings) != 1 {
			t.Errorf("bindings %q and %q", p.bindings, q.bindings)
		}
		must[protocol.ToolState](t)(r.Apply(stateOf(1, "1=a")))
		ok(t, r.Upsert("z", offers("2=b")))
		if _, err := r.ExecuteGranted(t.Context(), grant("2=b", "plugins"), Invocation{Args: args}); !errors.Is(err, ErrNoSource) {
			t.Errorf("ambiguous: %v", err)
		}
	})
}
