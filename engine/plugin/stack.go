package plugin

import "slices"

// Stack is an ordered list of factories. Every method keeps the order of the factories it does not touch, and copies
// the list instead of changing the slice that it was made from.
type Stack []Factory

// Push appends a factory.
func (s *Stack) Push(f Factory) { s.Extend(f) }

// Extend appends factories in order.
func (s *Stack) Extend(fs ...Factory) { *s = slices.Concat(*s, fs) }

// Remove removes the factory with this id, and reports whether there was one.
func (s *Stack) Remove(id string) bool {
	before := len(*s)
	s.Retain(func(f Factory) bool { return f.ID() != id })
	return len(*s) < before
}

// Replace puts f in the place of the factory with the same id, or at the end if there is none.
func (s *Stack) Replace(f Factory) {
	i := s.index(f.ID())
	if i < 0 {
		s.Push(f)
		return
	}
	*s = slices.Clone(*s)
	(*s)[i] = f
}

// Retain keeps the factories for which keep returns true.
func (s *Stack) Retain(keep func(Factory) bool) {
	*s = slices.DeleteFunc(slices.Clone(*s), func(f Factory) bool { return !keep(f) })
}

// IDs returns the ids in order.
func (s Stack) IDs() []string {
	ids := make([]string, len(s))
	for i, f := range s {
		ids[i] = f.ID()
	}
	return ids
}

// Override returns the factories of a daemon: the built-in ones whose id is not among the supplied ones, then the
// supplied ones.
func Override(builtin, supplied Stack) Stack {
	builtin.Retain(func(f Factory) bool { return supplied.index(f.ID()) < 0 })
	builtin.Extend(supplied...)
	return builtin
}

func (s Stack) index(id string) int {
	return slices.IndexFunc(s, func(f Factory) bool { return f.ID() == id })
}
