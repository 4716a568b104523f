package tool

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// Source is where tools come from: a plugin, or a client that provides tools of its own.
type Source struct {
	ID       string
	Provider Provider
}

// Registry is the tools of one session: its sources, and what the session decided about each tool. The name of a tool
// is unique; the first source that registered it keeps it. A Registry belongs to its session's owner and is not safe
// for concurrent use; the Catalog it makes is.
type Registry struct {
	live    map[string]*Entry // what the sources offered when they were last asked, by name
	state   protocol.ToolState
	catalog *Catalog // of live and state; nil after either changed
}

// ErrGeneration means that a change names a generation which is not the current one.
var ErrGeneration = errors.New("tool state has moved on")

// ErrUnknown means that a tool is not registered.
var ErrUnknown = errors.New("unknown tool")

// NewRegistry is the tools of sources with every tool a member, then with what was saved. Saved settings of tools
// that no source has are kept as orphans, and apply again when their source is back.
func NewRegistry(sources []Source, saved protocol.ToolState) *Registry {
	r := &Registry{state: protocol.ToolState{Generation: saved.Generation, Tools: slices.Clone(saved.Tools)}}
	r.SetSources(sources)
	return r
}

// SetSources replaces the sources, or asks the same ones again for what they offer. The generation grows if that
// changes which tools there are. What a changed tool says of itself is in the next Catalog either way.
func (r *Registry) SetSources(sources []Source) (changed bool) {
	r.live = r.offered(sources)
	r.catalog = nil
	next := r.merge()
	if slices.Equal(next, r.state.Tools) {
		return false
	}
	r.state = protocol.ToolState{Generation: r.state.Generation + 1, Tools: next}
	return true
}

// offered asks the sources. A tool that is what it was keeps its entry, and with it its schema, resolved or not.
func (r *Registry) offered(sources []Source) map[string]*Entry {
	live := map[string]*Entry{}
	for _, s := range sources {
		for _, t := range s.Provider.Tools() {
			name := t.Manifest.Name
			if _, taken := live[name]; taken {
				continue
			}
			e := &Entry{Tool: t, Source: s.ID, Provider: s.Provider}
			if known, ok := r.live[name]; ok && same(known.Tool, t) {
				e.schema, e.revision = known.schema, known.revision
			} else {
				e.schema, e.revision = newSchema(t.Manifest.Input), revision(t)
			}
			live[name] = e
		}
	}
	return live
}

func same(a, b Tool) bool {
	if !bytes.Equal(a.Manifest.Input, b.Manifest.Input) {
		return false
	}
	a.Manifest.Input, b.Manifest.Input = nil, nil
	return reflect.DeepEqual(a, b)
}

func (r *Registry) merge() []protocol.ToolStateSetting {
	saved := map[string]protocol.ToolStateSetting{}
	for _, s := range r.state.Tools {
		saved[s.Name] = s
	}
	out := make([]protocol.ToolStateSetting, 0, len(r.live))
	for name, e := range r.live {
		set, known := saved[name]
		delete(saved, name)
		out = append(out, protocol.ToolStateSetting{Name: name, Source: e.Source, Member: !known || set.Member})
	}
	for _, s := range saved {
		s.Orphan = true
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b protocol.ToolStateSetting) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// State is what is saved of the session's tools.
func (r *Registry) State() protocol.ToolState {
	return protocol.ToolState{Generation: r.state.Generation, Tools: slices.Clone(r.state.Tools)}
}

// Apply replaces the settings of all tools that want names, if want is of the current generation.
func (r *Registry) Apply(want protocol.ToolState) (protocol.ToolState, error) {
	members := map[string]bool{}
	for _, s := range want.Tools {
		members[s.Name] = s.Member
	}
	return r.SetMembership(want.Generation, members)
}

// SetMembership says which tools the model may call. It fails with ErrGeneration or ErrUnknown and then changes
// nothing; a change that changes nothing keeps the generation.
func (r *Registry) SetMembership(generation int64, members map[string]bool) (protocol.ToolState, error) {
	if generation != r.state.Generation {
		return r.State(), fmt.Errorf("generation %d, current is %d: %w", generation, r.state.Generation, ErrGeneration)
	}
	next := slices.Clone(r.state.Tools)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		i, ok := slices.BinarySearchFunc(next, name, func(s protocol.ToolStateSetting, name string) int {
			return strings.Compare(s.Name, name)
		})
		if !ok {
			return r.State(), fmt.Errorf("%q: %w", name, ErrUnknown)
		}
		next[i].Member = members[name]
	}
	if !slices.Equal(next, r.state.Tools) {
		r.state = protocol.ToolState{Generation: generation + 1, Tools: next}
		r.catalog = nil
	}
	return r.State(), nil
}

// Restore takes a state of this registry back, such as the one before a commit that failed.
func (r *Registry) Restore(state protocol.ToolState) {
	r.state = protocol.ToolState{Generation: state.Generation, Tools: slices.Clone(state.Tools)}
	r.catalog = nil
}
