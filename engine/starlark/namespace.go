package starlark

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"

	"go.starlark.net/starlark"

	"lashd/rpc/protocol"
)

// namespace holds the globals of a session. Rewritten code reads and assigns them as attributes of it, so it knows
// which globals a cell has used: only these can have changed, and those that share values with them.
//
// A global has a value, an encoding, or both. A restored global is decoded when a cell first uses it. The encoding is
// the state before the running cell; rollback drops the values of used globals, so that their next use decodes them
// again.
type namespace struct {
	in          *Interpreter
	globals     map[string]*variable
	predeclared starlark.StringDict // what compiled code sees: the namespace and the hidden functions
	used        []*variable         // by the running cell
	newest      uint64              // order of the newest global
}

// variable is one global.
type variable struct {
	name   string
	order  uint64         // of creation; an older global owns values that several share
	value  starlark.Value // nil: not decoded, or created by the running cell and not assigned
	saved  []byte         // newest encoding; nil: none
	reason string         // why the value cannot be saved; then saved is a tombstone
	lost   string         // why the value was not saved before a restart; the value is gone

	owners []string // of a restored global, until it is linked to them

	// links are globals that share values with this one, as of the newest capture.
	links map[*variable]bool

	used   bool           // by the running cell
	before starlark.Value // the value when the cell first used it
}

func newNamespace(in *Interpreter) *namespace {
	s := &namespace{in: in, globals: map[string]*variable{}}
	s.predeclared = starlark.StringDict{
		spaceName: s,
		guardName: starlark.NewBuiltin(guardName, in.guard),
		growName:  starlark.NewBuiltin(growName, in.grow),
		modName:   starlark.NewBuiltin(modName, in.mod),
		attrName:  starlark.NewBuiltin(attrName, in.attr),
	}
	return s
}

// The namespace is a starlark.Value only so that rewritten code can name it.
func (s *namespace) String() string        { return "<globals>" }
func (s *namespace) Type() string          { return "globals" }
func (s *namespace) Freeze()               {}
func (s *namespace) Truth() starlark.Bool  { return true }
func (s *namespace) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: globals") }
func (s *namespace) AttrNames() []string   { return nil }

// known reports whether a name exists.
func (s *namespace) known(name string) bool {
	return s.globals[name] != nil || s.in.lookup(name) != nil || name == historyName
}

// suggest returns the name that looks most like an unknown one, or "".
// Values are not looked at: a suggestion may be a name that has no value yet.
func (s *namespace) suggest(name string) string {
	names := slices.Concat(slices.Collect(maps.Keys(s.globals)), s.in.names())
	return nearest(name, names)
}

// Attr returns the value of a global or of a builtin.
func (s *namespace) Attr(name string) (starlark.Value, error) {
	if g := s.globals[name]; g != nil {
		s.use(g)
		return s.load(g)
	}
	if name == historyName {
		return s.in.history()
	}
	if v := s.in.lookup(name); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("%s has no value yet: it is used before its first assignment", name)
}

// SetField assigns a global.
// A stored value that others refer to is decoded before it is replaced, because they would lose it otherwise.
func (s *namespace) SetField(name string, v starlark.Value) error {
	if name == valueName {
		s.in.run.value = v
		return nil
	}
	if what := s.in.reserved(name); what != "" {
		return fmt.Errorf("cannot assign %s: it is %s; choose another name", name, what)
	}
	g := s.globals[name]
	if g == nil {
		s.newest++
		g = &variable{name: name, order: s.newest}
		s.globals[name] = g
	}
	s.use(g)
	if g.value == nil && len(g.links) > 0 { // others refer to its stored value
		if _, err := s.load(g); err != nil {
			return err
		}
	}
	g.value, g.lost = v, ""
	return nil
}

// use records that the running cell uses a global.
func (s *namespace) use(g *variable) {
	if !g.used {
		g.used, g.before = true, g.value
		s.used = append(s.used, g)
	}
}

// load returns the value of a global and decodes it if necessary.
func (s *namespace) load(g *variable) (starlark.Value, error) {
	switch {
	case g.value != nil:
		return g.value, nil
	case g.lost != "":
		return nil, fmt.Errorf("the value of %s was lost when the session was reloaded, because it could not be saved: %s; assign it again", g.name, g.lost)
	case g.saved == nil:
		return nil, fmt.Errorf("%s has no value yet: it is used before its first assignment", g.name)
	}
	if err := s.decode(g); err != nil {
		return nil, fmt.Errorf("the stored value of %s cannot be read: %w", g.name, err)
	}
	g.before = g.value
	return g.value, nil
}

// begin starts a cell.
// It forgets which globals the cell before has used. Their values stay.
func (s *namespace) begin() {
	for _, g := range s.used {
		g.used, g.before = false, nil
	}
	s.used = s.used[:0]
}

// connected returns the globals and all that share values with them, directly or not, by age. They are decoded and
// encoded together.
// The order by age is that of ownership, so an encoder or a decoder meets the owner of a shared value first.
func connected(globals ...*variable) []*variable {
	seen := map[*variable]bool{}
	var found []*variable
	var add func(g *variable)
	add = func(g *variable) {
		if seen[g] {
			return
		}
		seen[g] = true
		found = append(found, g)
		for other := range g.links {
			add(other)
		}
	}
	for _, g := range globals {
		add(g)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].order < found[j].order })
	return found
}

// rollback undoes what the running cell did to globals. A global that could not be saved before the cell keeps its old
// value, which the cell may have modified in place.
func (s *namespace) rollback() {
	for _, g := range connected(s.used...) {
		switch {
		case g.saved != nil && g.reason == "":
			g.value = nil
		case g.used && g.before == nil && g.saved == nil:
			delete(s.globals, g.name)
		case g.used:
			g.value = g.before
		}
	}
	s.begin()
}

// capture encodes the globals that the cell may have changed. It returns the names of those that did change, and all
// globals that cannot be saved.
func (s *namespace) capture() (changed []string, unsaved []protocol.UnsavedGlobal) {
	group := connected(s.used...)
	e := newEncoder(s.in)
	for _, g := range group {
		if g.name == "_" { // the name of values that are not needed
			delete(s.globals, g.name)
			continue
		}
		if g.value == nil && (g.saved != nil || g.lost != "") {
			continue
		}
		if unchanged(g) {
			continue
		}
		if g.value == nil { // the cell failed before the assignment
			delete(s.globals, g.name)
			continue
		}
		data, err := e.encode(g)
		g.reason = ""
		if err != nil {
			g.reason = err.Error()
			data = tombstone(g.order, g.value.Type(), g.reason)
		}
		if !bytes.Equal(data, g.saved) {
			g.saved = data
			changed = append(changed, g.name)
		}
	}
	s.begin()
	for name, g := range s.globals {
		if g.reason != "" {
			unsaved = append(unsaved, protocol.UnsavedGlobal{Name: name, Reason: g.reason})
		}
	}
	slices.SortFunc(unsaved, func(a, b protocol.UnsavedGlobal) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(changed)
	return changed, unsaved
}

// unchanged reports whether a global has the immutable value that it had before the cell, without encoding it.
// Only texts and bytes are worth the comparison. Numbers encode as fast as they compare, and a list may have been changed in place.
func unchanged(g *variable) bool {
	if g.saved == nil || g.reason != "" || g.before == nil {
		return false
	}
	switch v := g.value.(type) {
	case starlark.String:
		before, ok := g.before.(starlark.String)
		return ok && before == v
	case starlark.Bytes:
		before, ok := g.before.(starlark.Bytes)
		return ok && before == v
	}
	return false
}

// Snapshot returns the encodings of the globals that changed since the last Snapshot. The slices must not be modified.
// Changes are not kept after that. A caller that fails to store them must store all that it was given, together with the next Snapshot.
func (in *Interpreter) Snapshot() map[string][]byte {
	changed := map[string][]byte{}
	for name := range in.pending {
		if g := in.space.globals[name]; g != nil {
			changed[name] = g.saved
		}
	}
	in.pending = map[string]bool{}
	return changed
}

// Dirty reports whether Snapshot would return anything.
func (in *Interpreter) Dirty() bool { return len(in.pending) > 0 }

// Restore replaces all globals by encoded ones, which it keeps and decodes when they are used. Nil removes all globals. The
// slices must not change afterwards, because decoded strings are parts of them.
// A value with a damaged header is an error, and then nothing changes.
func (in *Interpreter) Restore(values map[string][]byte) error {
	s := newNamespace(in)
	for name, data := range values {
		g, err := restored(name, data)
		if err != nil {
			return fmt.Errorf("restore the global %s: %w", name, err)
		}
		s.globals[name] = g
		s.newest = max(s.newest, g.order)
	}
	s.join()
	in.space, in.sources, in.pending = s, map[string]*source{}, map[string]bool{}
	return nil
}

// Add is Restore for further globals: it keeps those that are there. The owner of a large state passes it in pieces.
func (in *Interpreter) Add(values map[string][]byte) error {
	for name, data := range values {
		g, err := restored(name, data)
		if err != nil {
			return fmt.Errorf("restore the global %s: %w", name, err)
		}
		in.space.globals[name] = g
		in.space.newest = max(in.space.newest, g.order)
	}
	in.space.join()
	return nil
}

// restored returns a global that has only its encoding.
// The value itself may still be damaged. That shows when a cell first uses it, and only this global is affected.
func restored(name string, data []byte) (*variable, error) {
	order, owners, lost, err := header(data)
	if err != nil {
		return nil, err
	}
	return &variable{name: name, order: order, saved: data, lost: lost, owners: owners}, nil
}

// join links restored globals to the owners of values that they share.
// If an owner is missing, the value that refers to it fails when it is decoded.
func (s *namespace) join() {
	for _, g := range s.globals {
		for _, name := range g.owners {
			if owner := s.globals[name]; owner != nil {
				link(g, owner)
			}
		}
		g.owners = nil
	}
}

// Globals describes all globals, sorted by name.
func (in *Interpreter) Globals() []protocol.CodeGlobal {
	return in.Describe(slices.Sorted(maps.Keys(in.space.globals)))
}

// Describe describes the globals with these names. Other names are left out.
func (in *Interpreter) Describe(names []string) []protocol.CodeGlobal {
	all := make([]protocol.CodeGlobal, 0, len(names))
	for _, name := range names {
		g := in.space.globals[name]
		if g == nil {
			continue
		}
		one := protocol.CodeGlobal{Name: name, Type: savedType(g.saved), Size: int64(len(g.saved))}
		if g.value != nil {
			one.Type = g.value.Type()
		}
		all = append(all, one)
	}
	return all
}

// Bind replaces the tools that cells can call.
// It must not be called while a cell runs. Functions and globals that refer to a tool by name find the new one at their next call.
func (in *Interpreter) Bind(tools []protocol.ToolManifest) { in.tools = newToolset(in, tools) }
