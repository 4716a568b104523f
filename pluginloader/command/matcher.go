package command

import (
	"regexp"
	"slices"
	"strings"
)

// matcher says what a hook is asked about: everything, names, or what an expression is found in.
type matcher struct {
	names []string
	re    *regexp.Regexp
}

// newMatcher reads a matcher. Plain words, with | or a comma between them, are whole names; anything else is RE2.
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

func (m matcher) everything() bool { return m.names == nil && m.re == nil }

func (m matcher) fits(name string) bool {
	return m.everything() || slices.Contains(m.names, name) || m.re != nil && m.re.MatchString(name)
}
