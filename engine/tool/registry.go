package tool

import (
	"errors"
	"fmt"
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
	sources []Source
	state   protocol.ToolState
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

// SetSources replaces the sources. The generation grows if that changes which tools there are.
func (r *Registry) SetSources(sources []Source) (changed bool) {
	r.sources = sources
	next := r.merge()
	if slices.Equal(next, r.state.Tools) {
		return false
	}
	r.state = protocol.ToolState{Generation: r.state.Generation + 1, Tools: next}
	return true
}

func (r *Registry) merge() []protocol.ToolStateSetting {
	saved := map[string]protocol.ToolStateSetting{}
	for _, s := range r.state.Tools {
		saved[s.Name] = s
	}
	var out []protocol.ToolStateSetting
	for name, f := range r.live() {
		set, known := saved[name]
		delete(saved, name)
		out = append(out, protocol.ToolStateSetting{Name: name, Source: f.source, Member: !known || set.Member})
	}
	for _, s := range saved {
		s.Orphan = true
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b protocol.ToolStateSetting) int { return strings.Compare(a.Name, b.Name) })
	return out
}

type found struct {
	tool     Tool
	source   string
	provider Provider
}

func (r *Registry) live() map[string]found {
	all := map[string]found{}
	for _, s := range r.sources {
		for _, t := range s.Provider.Tools() {
			if _, taken := all[t.Manifest.Name]; !taken {
				all[t.Manifest.Name] = found{t, s.ID, s.Provider}
			}
		}
	}
	return all
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
	for name, member := range members {
		i := slices.IndexFunc(next, func(s protocol.ToolStateSetting) bool { return s.Name == name })
		if i < 0 {
			return r.State(), fmt.Errorf("%q: %w", name, ErrUnknown)
		}
		next[i].Member = member
	}
	if !slices.Equal(next, r.state.Tools) {
		r.state = protocol.ToolState{Generation: generation + 1, Tools: next}
	}
	return r.State(), nil
}

// Restore takes a state back, such as the one before a commit that failed.
func (r *Registry) Restore(state protocol.ToolState) { r.state = state }
