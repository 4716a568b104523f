package plugin

import "slices"

// Stack is a list of factories that is being put together. No change of it reorders what it does not concern, and none
// changes the list that it was made from.
type Stack []Factory

// Push adds a factory at the end.
func (s *Stack) Push(f Factory) { s.Extend(f) }

// Extend adds factories at the end, in order.
func (s *Stack) Extend(fs ...Factory) { *s = slices.Concat(*s, fs) }

// Remove takes the factory of an id out, and tells whether there was one.
func (s *Stack) Remove(id string) bool {
	before := len(*s)
	s.Retain(func(f Factory) bool { return f.ID() != id })
	return len(*s) < before
}

// Replace puts f where a factory of its id is, or else at the end.
func (s *Stack) Replace(f Factory) {
	i := s.index(f.ID())
	if i < 0 {
		s.Push(f)
		return
	}
	*s = slices.Clone(*s)
	(*s)[i] = f
}

// Retain keeps those for which keep is true.
func (s *Stack) Retain(keep func(Factory) bool) {
	*s = slices.DeleteFunc(slices.Clone(*s), func(f Factory) bool { return !keep(f) })
}

// IDs are the ids, in order.
func (s Stack) IDs() []string {
	ids := make([]string, len(s))
	for i, f := range s {
		ids[i] = f.ID()
	}
	return ids
}

// Override is the list of a daemon: the built-in factories whose id no supplied one has, then the supplied ones.
func Override(builtin, supplied Stack) Stack {
	builtin.Retain(func(f Factory) bool { return supplied.index(f.ID()) < 0 })
	builtin.Extend(supplied...)
	return builtin
}

func (s Stack) index(id string) int {
	return slices.IndexFunc(s, func(f Factory) bool { return f.ID() == id })
}
