package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// kit is a provider with tools that a test can change. It records its calls.
type kit struct {
	tools []Tool
	ran   []Invocation
}

func (k *kit) Tools() []Tool { return k.tools }

func (k *kit) Execute(_ context.Context, call Invocation) (Result, error) {
	k.ran = append(k.ran, call)
	return Result{Output: protocol.Succeed("ran " + call.ToolID)}, nil
}

// named returns tools for words of the form name or id=name.
func named(words ...string) []Tool {
	var tools []Tool
	for _, word := range words {
		id, name, ok := strings.Cut(word, "=")
		if !ok {
			name, id = word, ""
		}
		tools = append(tools, Tool{Manifest: protocol.ToolManifest{ID: id, Name: name, Description: "does " + name}})
	}
	return tools
}

func offers(words ...string) *kit { return &kit{tools: named(words...)} }

// lazy is a kit that makes contracts on demand and counts the requests.
type lazy struct {
	kit
	made map[string]int
	fail error
}

func (l *lazy) Contract(id string) (protocol.ToolContract, error) {
	l.made[id]++
	return protocol.ToolContract{Replay: protocol.ReplaySafe, Input: json.RawMessage(`{"type":"object","required":["x"]}`)}, l.fail
}

func lazily(words ...string) *lazy { return &lazy{kit: *offers(words...), made: map[string]int{}} }

// deep is a kit with unlisted tools that counts the requests for them.
type deep struct {
	kit
	below []Tool
	asked int
}

func (d *deep) ResolveName(name string) (Tool, bool) {
	return d.find(func(m protocol.ToolManifest) bool { return m.Name == name })
}

func (d *deep) ResolveID(id string) (Tool, bool) {
	return d.find(func(m protocol.ToolManifest) bool { return m.ID == id || m.ID == "" && m.Name == id })
}

func (d *deep) find(is func(protocol.ToolManifest) bool) (Tool, bool) {
	d.asked++
	i := slices.IndexFunc(d.below, func(t Tool) bool { return is(t.Manifest) })
	if i < 0 {
		return Tool{}, false
	}
	return d.below[i], true
}

// registry returns a registry of kits, given as pairs of source id and kit.
func registry(t *testing.T, pairs ...any) *Registry {
	t.Helper()
	var sources []Source
	for i := 0; i < len(pairs); i += 2 {
		sources = append(sources, Source{ID: pairs[i].(string), Provider: pairs[i+1].(Provider)})
	}
	r := NewRegistry(nil, sources, protocol.ToolState{})
	if err := r.Refused(); err != nil {
		t.Fatal(err)
	}
	return r
}

// show formats a state: the generation, then each tool with its flags.
func show(s protocol.ToolState) string {
	words := []string{fmt.Sprint(s.Generation)}
	for _, id := range slices.Sorted(maps.Keys(s.Tools)) {
		tool, word := s.Tools[id], id
		if name := tool.Manifest.Name; name != id {
			word += "=" + name
		}
		if !tool.IsMember() {
			word += "-out"
		}
		if tool.Orphaned {
			word += "-orphan"
		}
		if tool.Override != "" {
			word += "-" + string(tool.Override)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// is compares the state of a registry with the format of show.
func (r *Registry) is(t *testing.T, want string) {
	t.Helper()
	if got := show(r.State()); got != want {
		t.Errorf("state %q, want %q", got, want)
	}
}

// out parses the format of show into a state.
func stateOf(generation int64, words ...string) protocol.ToolState {
	s := protocol.ToolState{Generation: generation, Tools: map[string]protocol.ToolSetting{}}
	for _, word := range words {
		name, flags, _ := strings.Cut(word, "-")
		m := named(name)[0].Manifest
		if m.ID == "" {
			m.ID = m.Name
		}
		set := protocol.ToolSetting{Manifest: m, Orphaned: strings.Contains(flags, "orphan")}
		if strings.Contains(flags, "out") {
			set.Member = new(false)
		}
		s.Tools[m.ID] = set
	}
	return s
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// names returns the tools of a catalog, in order.
func names(c *Catalog) string { return strings.Join(c.Names(), " ") }

// UpsertOverlay is Upsert, but removes conflicting tools of other sources.
func (r *Registry) UpsertOverlay(id string, providers ...Source) error {
	return r.upsert(r.now.Load().sources[id], id, true, providers)
}

// Refresh asks every source for its tools again and recomposes. A source that fails keeps its tools and is in the error.
func (k *Composer) Refresh() error {
	return errors.Join(k.base.Refresh(), k.Recompose())
}

// Invalidate makes the next call build a new catalog.
func (k *Composer) Invalidate() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cached, k.making = nil, nil
}

// ExecuteGranted makes a call that a grant allows. The registry stays as it is. What is hidden stays so: no grant allows
// it. The error is a CallError if the call was not made.
func (r *Registry) ExecuteGranted(ctx context.Context, g Grant, call Invocation) (Result, error) {
	e, err := r.now.Load().granted(g)
	if err == nil {
		err = e.Validate(call.Args)
	}
	if err != nil {
		return Result{}, err
	}
	if call, err = e.prepare(ctx, call); err != nil {
		return Result{}, err
	}
	return e.run(ctx, call)
}
