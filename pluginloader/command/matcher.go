package command

import (
	"regexp"
	"slices"
	"strings"
)

// matcher restricts a hook to some tools or subjects, such as the reason for which a session ends.
// The zero value matches everything.
type matcher struct {
	names []string       // whole names
	re    *regexp.Regexp // expression that must occur in the name
}

// newMatcher parses a matcher in the syntax of other agents. Plain words separated by | or commas
// are whole names. Anything else is an RE2 expression that may match anywhere in a name.
func newMatcher(text string) (m matcher, err error) {
	plain := !strings.ContainsFunc(text, func(c rune) bool {
		return !strings.ContainsRune("_-|, ", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	switch {
	case text == "" || text == "*":
	case plain:
		m.names = strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("|, ", c) })
	default:
		m.re, err = regexp.Compile(text)
	}
	return m, err
}

// everything reports whether the matcher has no restriction.
func (m matcher) everything() bool { return m.names == nil && m.re == nil }

// fits reports whether a name matches: it is one of the names, or the expression occurs in it.
func (m matcher) fits(name string) bool {
	return m.everything() || slices.Contains(m.names, name) || m.re != nil && m.re.MatchString(name)
}
