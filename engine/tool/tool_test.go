package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

// list is a provider of tools that do nothing.
type list []Tool

func (l list) Tools() []Tool { return l }

func (list) Execute(context.Context, Invocation) (Result, error) { return Result{}, nil }

func named(names ...string) list {
	var l list
	for _, n := range names {
		l = append(l, Tool{Manifest: protocol.ToolManifest{Name: n, Description: "does " + n}})
	}
	return l
}

func source(id string, l list) Source { return Source{ID: id, Provider: l} }

func settings(s protocol.ToolState) []string {
	var list []string
	for _, t := range s.Tools {
		line := t.Name + " of " + t.Source
		if !t.Member {
			line += " out"
		}
		if t.Orphan {
			line += " orphan"
		}
		list = append(list, line)
	}
	return list
}

func offered(c *Catalog) []string {
	var list []string
	for _, m := range c.Manifests() {
		list = append(list, m.Name)
	}
	return list
}

func TestRegistry(t *testing.T) {
	ab := source("p", named("b", "a"))

	t.Run("every tool is a member at first, in order of name", func(t *testing.T) {
		r := NewRegistry([]Source{ab}, protocol.ToolState{})
		if got := settings(r.State()); !slices.Equal(got, []string{"a of p", "b of p"}) || r.State().Generation != 1 {
			t.Errorf("generation %d: %q", r.State().Generation, got)
		}
	})

	t.Run("the generation grows only when something changes", func(t *testing.T) {
		r := NewRegistry([]Source{ab}, protocol.ToolState{})
		again := NewRegistry([]Source{ab}, r.State())
		if got := again.State().Generation; got != 1 {
			t.Errorf("opened again, the generation is %d", got)
		}
		if r.SetSources([]Source{ab}) || r.State().Generation != 1 {
			t.Error("the same sources are a change")
		}
		for i, change := range []func() (protocol.ToolState, error){
			func() (protocol.ToolState, error) { return r.SetMembership(1, map[string]bool{"a": true}) },
			func() (protocol.ToolState, error) { return r.SetMembership(1, nil) },
			func() (protocol.ToolState, error) { return r.Apply(r.State()) },
		} {
			if s, err := change(); err != nil || s.Generation != 1 {
				t.Errorf("change %d that changes nothing: generation %d, %v", i, s.Generation, err)
			}
		}
		if s, err := r.SetMembership(1, map[string]bool{"a": false}); err != nil || s.Generation != 2 {
			t.Errorf("generation %d, %v", s.Generation, err)
		}
		if !r.SetSources([]Source{ab, source("q", named("c"))}) || r.State().Generation != 3 {
			t.Errorf("a new source gives generation %d", r.State().Generation)
		}
	})

	t.Run("a change of an older generation is refused and changes nothing", func(t *testing.T) {
		r := NewRegistry([]Source{ab}, protocol.ToolState{Generation: 6})
		want := r.State()
		old := protocol.ToolState{Generation: 6, Tools: []protocol.ToolStateSetting{{Name: "a", Member: false}}}
		if got, err := r.Apply(old); !errors.Is(err, ErrGeneration) || got.Generation != 7 {
			t.Errorf("generation %d, %v; want the current one and ErrGeneration", got.Generation, err)
		}
		if _, err := r.SetMembership(8, map[string]bool{"a": false}); !errors.Is(err, ErrGeneration) {
			t.Errorf("of a later generation: %v", err)
		}
		if diff := cmp.Diff(want, r.State()); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("membership of an unknown tool is refused and changes nothing", func(t *testing.T) {
		r := NewRegistry([]Source{ab}, protocol.ToolState{})
		want, catalog := r.State(), r.Catalog()
		for range 20 {
			_, err := r.SetMembership(1, map[string]bool{"a": false, "b": false, "x": false, "y": true})
			if !errors.Is(err, ErrUnknown) || err.Error() != `"x": unknown tool` {
				t.Fatalf("error %v, want the first unknown name in it", err)
			}
		}
		if diff := cmp.Diff(want, r.State()); diff != "" || r.Catalog() != catalog {
			t.Error(diff)
		}
	})

	t.Run("orphans are kept and come back with their settings", func(t *testing.T) {
		r := NewRegistry([]Source{ab, source("q", named("c"))}, protocol.ToolState{})
		if _, err := r.SetMembership(1, map[string]bool{"b": false}); err != nil {
			t.Fatal(err)
		}
		r.SetSources([]Source{source("q", named("c"))})
		if got := settings(r.State()); !slices.Equal(got, []string{"a of p orphan", "b of p out orphan", "c of q"}) {
			t.Errorf("without the source: %q", got)
		}
		if got := offered(r.Catalog()); !slices.Equal(got, []string{"c"}) {
			t.Errorf("the model sees %q", got)
		}
		orphan := r.Catalog().Records()[0]
		if orphan.Name != "a" || !orphan.Orphan || orphan.Member || orphan.Document || orphan.Source != "p" {
			t.Errorf("record of an orphan: %+v", orphan)
		}
		var saved protocol.ToolState // the daemon restarts meanwhile
		text, _ := json.Marshal(r.State())
		if err := json.Unmarshal(text, &saved); err != nil {
			t.Fatal(err)
		}
		r = NewRegistry([]Source{source("q", named("c"))}, saved)
		if r.State().Generation != saved.Generation {
			t.Errorf("generation %d after reopening, want %d", r.State().Generation, saved.Generation)
		}
		r.SetSources([]Source{ab})
		if got := settings(r.State()); !slices.Equal(got, []string{"a of p", "b of p out", "c of q orphan"}) {
			t.Errorf("with the source again: %q", got)
		}
	})

	t.Run("the first source of a name wins", func(t *testing.T) {
		client := source("client", list{{Manifest: protocol.ToolManifest{Name: "a", Description: "the client's"}}})
		r := NewRegistry([]Source{client, ab}, protocol.ToolState{})
		e, ok := r.Catalog().Lookup("a")
		if !ok || e.Source != "client" || e.Tool.Manifest.Description != "the client's" {
			t.Errorf("entry %+v", e)
		}
		if got := settings(r.State()); !slices.Equal(got, []string{"a of client", "b of p"}) {
			t.Errorf("settings %q", got)
		}
		twice := NewRegistry([]Source{source("p", named("a", "a"))}, protocol.ToolState{})
		if got := offered(twice.Catalog()); !slices.Equal(got, []string{"a"}) {
			t.Errorf("a name that a source has twice is offered as %q", got)
		}
	})

	t.Run("a state can be taken back", func(t *testing.T) {
		r := NewRegistry([]Source{ab}, protocol.ToolState{})
		before := r.State()
		if _, err := r.SetMembership(1, map[string]bool{"a": false}); err != nil {
			t.Fatal(err)
		}
		r.Restore(before)
		before.Tools[0].Member = false
		if got := offered(r.Catalog()); !slices.Equal(got, []string{"a", "b"}) || r.State().Generation != 1 {
			t.Errorf("generation %d offers %q", r.State().Generation, got)
		}
	})

	t.Run("what is handed out is not shared", func(t *testing.T) {
		r := NewRegistry([]Source{ab}, protocol.ToolState{})
		s := r.State()
		s.Tools[0].Member = false
		_ = append(r.Catalog().Manifests(), protocol.ToolManifest{Name: "junk"})
		_ = append(r.Catalog().Records(), protocol.ToolRecord{})
		if got := r.State().Tools[0]; !got.Member {
			t.Errorf("setting %+v", got)
		}
	})
}

func TestCatalog(t *testing.T) {
	tool := func(schema string) Tool {
		return Tool{Manifest: protocol.ToolManifest{Name: "a", Description: "12345", Input: json.RawMessage(schema)}}
	}
	record := func(t Tool) protocol.ToolRecord {
		return NewRegistry([]Source{source("p", list{t})}, protocol.ToolState{}).Catalog().Records()[0]
	}

	t.Run("a catalog does not change when the registry does", func(t *testing.T) {
		r := NewRegistry([]Source{source("p", named("a", "b"))}, protocol.ToolState{})
		before := r.Catalog()
		if r.Catalog() != before {
			t.Error("a catalog is built again without a change")
		}
		if _, err := r.SetMembership(1, map[string]bool{"b": false}); err != nil {
			t.Fatal(err)
		}
		if _, ok := before.Lookup("b"); !ok || len(before.Manifests()) != 2 {
			t.Error("the pinned catalog changed")
		}
		after := r.Catalog()
		if _, ok := after.Lookup("b"); ok || len(after.Records()) != 2 || after.Records()[1].Member {
			t.Errorf("the new catalog is %+v", after.Records())
		}
	})

	t.Run("the revision changes with manifest and contract", func(t *testing.T) {
		base := record(tool(`{"type":"object"}`))
		if again := record(tool(`{"type":"object"}`)); again.Revision != base.Revision {
			t.Error("the same tool has another revision")
		}
		described, safe := tool(`{"type":"object"}`), tool(`{"type":"object"}`)
		described.Manifest.Description = "other"
		safe.Contract.Replay = protocol.ReplaySafe
		seen := []protocol.Digest{base.Revision}
		for _, other := range []Tool{tool(`{"type":"object","required":["x"]}`), described, safe, tool(`{"broken`), tool(`{"other`)} {
			got := record(other).Revision
			if slices.Contains(seen, got) {
				t.Errorf("%+v has the revision of another", other)
			}
			seen = append(seen, got)
		}
	})

	t.Run("a changed schema is in the next catalog, of the same generation", func(t *testing.T) {
		r := NewRegistry([]Source{source("p", list{tool(`{"type":"object"}`)})}, protocol.ToolState{})
		before, _ := r.Catalog().Lookup("a")
		if r.SetSources([]Source{source("p", list{tool(`{"type":"object","required":["x"]}`)})}) {
			t.Error("the generation grew")
		}
		after, _ := r.Catalog().Lookup("a")
		if err := after.Validate(json.RawMessage(`{}`)); err == nil {
			t.Error("the old schema is in force")
		}
		if err := before.Validate(json.RawMessage(`{}`)); err != nil {
			t.Errorf("the pinned catalog has the new schema: %v", err)
		}
	})

	t.Run("tokens are estimated as a quarter of the bytes", func(t *testing.T) {
		if got := record(tool(`{"type":"object"}`)).Tokens; got != (1+5+17)/4 {
			t.Errorf("%d tokens", got)
		}
	})

	t.Run("a name that is almost right is found", func(t *testing.T) {
		c := NewRegistry([]Source{source("p", named("read_file", "write"))}, protocol.ToolState{}).Catalog()
		for name, want := range map[string]string{"Read_File": "read_file", "readFile": "read_file", "read-file": "read_file", "remove": "", "": ""} {
			if got := c.Nearest(name); got != want {
				t.Errorf("%q is almost %q, want %q", name, got, want)
			}
		}
	})

	t.Run("resolved schemas outlive a rebuild, resolved once", func(t *testing.T) {
		r := NewRegistry([]Source{source("p", many(3))}, protocol.ToolState{})
		before, _ := r.Catalog().Lookup("tool000")
		if err := before.Validate(json.RawMessage(`{"path":"x"}`)); err != nil {
			t.Fatal(err)
		}
		first, _ := before.schema.resolve()
		r.SetSources([]Source{source("q", many(4))})
		after, _ := r.Catalog().Lookup("tool000")
		if second, _ := after.schema.resolve(); first != second || after.Source != "q" {
			t.Error("the schema was resolved again")
		}
	})

	t.Run("a catalog is used by many at once", func(t *testing.T) {
		r := NewRegistry([]Source{source("p", many(20))}, protocol.ToolState{})
		var wg sync.WaitGroup
		for g := range 8 {
			c := r.Catalog()
			wg.Go(func() {
				for i := range 100 {
					e, ok := c.Lookup(fmt.Sprintf("tool%03d", (g+i)%20))
					if ok && e.Validate(json.RawMessage(`{"path":"x"}`)) != nil {
						t.Error("valid arguments are refused")
					}
					c.Nearest("TOOL001")
					_ = append(c.Manifests(), protocol.ToolManifest{})
					_ = append(c.Records(), protocol.ToolRecord{})
				}
			})
			// The owner goes on changing the registry meanwhile.
			if _, err := r.SetMembership(r.State().Generation, map[string]bool{fmt.Sprintf("tool%03d", g): false}); err != nil {
				t.Fatal(err)
			}
			r.SetSources([]Source{source("p", many(20))})
		}
		wg.Wait()
	})
}

func TestValidate(t *testing.T) {
	check := func(schema, args string) error {
		e, ok := NewRegistry([]Source{source("p", list{{Manifest: protocol.ToolManifest{
			Name: "a", Input: json.RawMessage(schema),
		}}})}, protocol.ToolState{}).Catalog().Lookup("a")
		if !ok {
			t.Fatal("no entry")
		}
		return e.Validate(json.RawMessage(args))
	}
	const strict = `{"type":"object","properties":{"path":{"type":"string","minLength":1},"n":{"type":"integer"}},"required":["path"],"additionalProperties":false}`
	const open = `{"type":"object","properties":{"path":{"type":"string"}}}`
	const tree = `{"$defs":{"node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"additionalProperties":false}},"$ref":"#/$defs/node"}`

	t.Run("runtime/T08 arguments that fit are accepted", func(t *testing.T) {
		for _, c := range [][2]string{
			{strict, `{"path":"x"}`}, {strict, ` {"path":"x","n":3.0} `}, {open, `{"path":"x","more":1}`}, {open, `{}`},
			{``, `{}`}, {``, `{"x":1}`}, {tree, `{"kids":[{"kids":[]},{}]}`}, {`true`, `{}`},
			{`{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}}`, `{"$ref":"#"}`},
			{`{"definitions":{"a/b":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a~1b"}}}`, `{"x":"y"}`},
			{`{"$defs":{"a b":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a%20b"}}}`, `{"x":"y"}`},
			{`{"$schema":"http://json-schema.org/draft-07/schema#","anyOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/a"}],"definitions":{"a":{}}}`, `{}`},
		} {
			if err := check(c[0], c[1]); err != nil {
				t.Errorf("%s with schema %s: %v", c[1], c[0], err)
			}
		}
	})

	t.Run("runtime/T08 arguments that do not fit are refused", func(t *testing.T) {
		for _, c := range [][2]string{
			{strict, `{}`}, {strict, `{"path":""}`}, {strict, `{"path":1}`}, {strict, `{"path":"x","n":1.5}`}, {strict, `{"path":"x","more":1}`},
			{strict, `{"path":"x"} {}`}, {strict, `{"path":`}, {strict, ``}, {strict, `null`}, {strict, `[]`},
			{``, `[]`}, {``, `"x"`}, {``, ``}, {tree, `{"kids":[{"x":1}]}`}, {`false`, `{}`},
		} {
			if err := check(c[0], c[1]); err == nil {
				t.Errorf("%q with schema %s is accepted", c[1], c[0])
			}
		}
	})

	t.Run("runtime/T08 a schema that cannot serve fails its own calls", func(t *testing.T) {
		for _, schema := range []string{
			`{"broken`, `[]`, `{"type":5}`, `{"$ref":"#/$defs/none"}`, `{"$ref":"https://example.com/x"}`, `{"pattern":"("}`,
			// Validating by these would never end.
			`{"$ref":"#"}`,
			`{"allOf":[{"$ref":"#"}]}`,
			`{"not":{"anyOf":[{"type":"string"},{"$ref":"#"}]}}`,
			`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"if":{"$ref":"#/$defs/a"}}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
			`{"dependentSchemas":{"x":{"$ref":"#"}}}`,
			`{"$defs":{"a b":{"$ref":"#/$defs/a%20b"}},"$ref":"#/$defs/a%20b"}`,
			`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`,
			`{"$anchor":"a","$ref":"#a"}`,
			`{"$id":"https://x/y","$ref":"https://x/y"}`,
			`{"properties":{"p":{"$id":"https://x/p","$ref":"#"}}}`,
		} {
			if err := CheckSchema(json.RawMessage(schema)); err == nil {
				t.Errorf("%s is accepted", schema)
			}
			if err := check(schema, `{"x":{}}`); err == nil || !strings.Contains(err.Error(), "schema") && !strings.Contains(err.Error(), "resolv") {
				t.Errorf("a call with schema %s: %v", schema, err)
			}
		}
		for _, good := range []string{``, strict, open, tree} {
			if err := CheckSchema(json.RawMessage(good)); err != nil {
				t.Errorf("%s: %v", good, err)
			}
		}
	})
}

// many is n tools with schemas of the usual size.
func many(n int) list {
	var l list
	for i := range n {
		l = append(l, Tool{
			Manifest: protocol.ToolManifest{
				Name: fmt.Sprintf("tool%03d", i), Description: strings.Repeat("Reads a file of the workspace. ", 6),
				Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("absolute ", 30) +
					`"},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`),
			},
			Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
		})
	}
	return l
}

// BenchmarkCatalog is what a change of a session's tools costs with 200 of them.
func BenchmarkCatalog(b *testing.B) {
	tools := many(200)
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			NewRegistry([]Source{source("p", tools)}, protocol.ToolState{}).Catalog()
		}
	})
	r := NewRegistry([]Source{source("p", tools)}, protocol.ToolState{})
	b.Run("membership", func(b *testing.B) {
		for on := false; b.Loop(); on = !on {
			if _, err := r.SetMembership(r.State().Generation, map[string]bool{"tool100": on}); err != nil {
				b.Fatal(err)
			}
			r.Catalog()
		}
	})
	b.Run("sources", func(b *testing.B) {
		for b.Loop() {
			r.SetSources([]Source{source("p", tools)})
			r.Catalog()
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			r.Catalog()
		}
	})
}
