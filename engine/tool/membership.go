package tool

import (
	"fmt"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// ladder lists the levels of availability, lowest first. Tools from callable on are members: the model may call them.
var ladder = []protocol.ToolAvailability{protocol.ToolOff, protocol.ToolSearchable, protocol.ToolCallable, protocol.ToolShowcased}

// Callable reports whether a level makes a tool a member. The empty level counts as the highest.
func Callable(a protocol.ToolAvailability) bool {
	return a == "" || slices.Index(ladder, a) >= slices.Index(ladder, protocol.ToolCallable)
}

// CheckAvailability returns an error unless the level exists. The empty level is valid.
func CheckAvailability(a protocol.ToolAvailability) error {
	if !known(a) {
		return fmt.Errorf("availability %q: must be one of %v: %w", a, ladder, ErrState)
	}
	return nil
}

// known reports whether the level exists.
func known(a protocol.ToolAvailability) bool { return a == "" || slices.Contains(ladder, a) }

// availability returns the effective level: the override, or else the level that follows from membership.
func (it item) availability() protocol.ToolAvailability {
	switch {
	case it.override != "":
		return it.override
	case it.member:
		return protocol.ToolShowcased
	}
	return protocol.ToolOff
}

// SetMembership sets which tools the model may call, by name, in one change. generation must be the current one. It
// fails with a GenerationError or ErrUnknown and then changes nothing. A level that contradicts the new membership is
// removed.
func (r *Registry) SetMembership(generation int64, members map[string]bool) (protocol.ToolState, error) {
	return r.set(generation, func(c *contents) error {
		return c.each(slices.Sorted(maps.Keys(members)), func(it *item) {
			it.member = members[it.Manifest.Name]
			if it.member != Callable(it.override) {
				it.override = ""
			}
		})
	})
}

// SetAvailability sets the level of tools by name; the empty level removes the override. Generation and errors are as
// for SetMembership.
func (r *Registry) SetAvailability(generation int64, names []string, level protocol.ToolAvailability) (protocol.ToolState, error) {
	return r.set(generation, func(c *contents) error {
		if err := CheckAvailability(level); err != nil {
			return err
		}
		return c.each(names, func(it *item) { it.override, it.member = level, Callable(level) })
	})
}

// each applies change to the named tools, including orphans and tools that are not members.
func (c *contents) each(names []string, change func(*item)) error {
	for _, name := range names {
		it, ok := c.named(name)
		if !ok {
			return fmt.Errorf("%q: %w", name, ErrUnknown)
		}
		change(&it)
		c.entries[it.Manifest.ID] = it
	}
	return nil
}

// named returns the tool with this name. A tool that a source provides wins over an orphan.
func (c *contents) named(name string) (item, bool) {
	if it, ok := c.bound(lookup{name: name}); ok {
		return it, true
	}
	for _, it := range c.sorted() {
		if it.Manifest.Name == name {
			return it, true
		}
	}
	return item{}, false
}
