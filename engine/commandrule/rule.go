package commandrule

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"lashd/internal/pathresolve"
)

// Match is the answer whether a rule applies to a line.
type Match int

const (
	No Match = iota
	// Maybe means that it cannot be known what the line runs.
	Maybe
	Yes
)

// Where resolves a path that is relative to dir. An empty dir is the workspace.
type Where func(dir, name string) pathresolve.Places

// Prefix is the beginning of a command to which a rule applies. Its first word names a
// program or, with a slash in it, a file or a directory of programs.
type Prefix struct {
	words []word
	// ok means that the text is the beginning of exactly one simple command.
	ok bool
}

// ParsePrefix parses the prefix of a rule. A text that is not one simple command covers
// nothing and may apply to every line.
func ParsePrefix(text string) Prefix {
	r := &reading{dialect: syntax.LangPOSIX, prefix: true}
	r.parse(text, 0)
	if r.opaque || len(r.commands) != 1 || hasUnknown(r.commands[0].words) {
		return Prefix{}
	}
	return Prefix{r.commands[0].words, true}
}

// hasUnknown reports whether a shell computes any of the words.
func hasUnknown(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return w.kind == unknown })
}

// Covers reports whether every command that the line runs in dir begins with the prefix.
// Rules that allow use it.
func (l Line) Covers(p Prefix, dir string, where Where) bool {
	for _, r := range l.readings {
		if r.opaque || r.unknown || len(r.commands) == 0 || !p.ok {
			return false
		}
		for _, c := range r.commands {
			if !c.inner && !c.covered(p, dir, where) {
				return false
			}
		}
	}
	return true
}

// covered reports whether a command begins with the prefix and the prefix reaches far
// enough to name what it runs.
func (c command) covered(p Prefix, dir string, where Where) bool {
	if len(c.words) < len(p.words) || len(p.words) < c.reach {
		return false
	}
	if !slices.Equal(c.words[1:len(p.words)], p.words[1:]) {
		return false
	}
	name, rule := c.words[0], p.words[0]
	if isPath(rule) {
		return isPath(name) && name.kind == literal && where(dir, name.text).In(where("", rule.text))
	}
	return name.kind == literal && name == rule
}

// isPath reports whether a word has a slash, so that no search path is used.
func isPath(w word) bool { return strings.Contains(w.text, "/") }

// About returns whether the line runs, in dir, a command that begins with the prefix. Rules
// that ask or deny use it.
func (l Line) About(p Prefix, dir string, where Where) Match {
	if !p.ok {
		return Maybe
	}
	found := No
	for _, r := range l.readings {
		if r.unknown {
			found = max(found, Maybe)
		}
		for _, c := range r.commands {
			found = max(found, r.about(c, p, dir, where))
		}
		if found == No && r.mentions(p) {
			found = Maybe
		}
	}
	return found
}

// about is About for one command.
func (r *reading) about(c command, p Prefix, dir string, where Where) Match {
	m := min(r.program(c.words[0], p.words[0], dir, where), arguments(c.words[1:], p.words[1:]))
	if c.possible {
		m = min(m, Maybe)
	}
	return m
}

// program compares a program with that of a rule: by its name in any directory, and by its
// place in the file system.
func (r *reading) program(w, rule word, dir string, where Where) Match {
	name := strings.TrimRight(rule.text, "/")
	switch {
	case w.kind == unknown:
		return Maybe
	case strings.EqualFold(base(w.text), base(name)):
		return Yes
	case w.kind == pattern && isPath(rule):
		return Maybe
	case w.kind == pattern:
		return mayMatch(w, base(name))
	case isPath(w) && r.moves && !strings.HasPrefix(w.text, "/"):
		return Maybe
	case isPath(w) && leadsTo(where(dir, w.text), base(name)):
		return Yes
	case isPath(rule) && isPath(w) && where(dir, w.text).MayBeIn(where("", rule.text)):
		return Yes
	}
	return No
}

// leadsTo reports whether a path may lead to a program of this name, ignoring case.
func leadsTo(at pathresolve.Places, name string) bool {
	return len(at) == 0 || slices.ContainsFunc(at, func(p string) bool { return strings.EqualFold(filepath.Base(p), name) })
}

// mayMatch returns Maybe if a pattern of the shell may expand to name, else No.
func mayMatch(w word, name string) Match {
	pattern := base(w.text)
	if ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name)); ok || err != nil || strings.ContainsAny(w.text, "{~") {
		return Maybe
	}
	return No
}

// arguments compares words with those of a rule. It skips options between them, and words
// that may be values of options.
func arguments(words, rule []word) Match {
	found, i := Yes, 0
	for _, want := range rule {
		for ; ; i++ {
			if i == len(words) {
				return No
			}
			w := words[i]
			if w.kind == unknown {
				return Maybe
			}
			if w.text == want.text {
				break
			}
			if w.kind == pattern && mayMatch(w, want.text) == Maybe {
				found = Maybe
				break
			}
			if !w.option() && !want.option() && (i == 0 || !words[i-1].option()) {
				return No
			}
		}
		i++
	}
	return found
}
