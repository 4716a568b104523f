package glob

import (
	"slices"
	"strings"
)

// Ignore holds the patterns of one .gitignore. Paths are relative to the directory that contains
// the file.
type Ignore []ignoreRule

// ignoreRule is one line. dirOnly: it ended in a slash. keep: it began with !, so its paths are
// kept.
type ignoreRule struct {
	Glob
	dirOnly, keep bool
}

// ParseIgnore parses a .gitignore. An invalid pattern matches nothing, as in git.
func ParseIgnore(text string) Ignore {
	var rules Ignore
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var r ignoreRule
		line, r.keep = strings.CutPrefix(line, "!")
		line, r.dirOnly = strings.CutSuffix(line, "/")
		anchored := strings.Contains(line, "/")
		g, err := compile(line, false)
		if err != nil {
			continue
		}
		r.Glob = g
		if anchored {
			r.Glob = g.Anchored()
		}
		rules = append(rules, r)
	}
	return rules
}

// Match reports whether a path is ignored, provided that no directory above it is. dir says that
// the path is a directory.
func (ig Ignore) Match(p string, dir bool) bool {
	ignored, _ := ig.Verdict(p, dir)
	return ignored
}

// Verdict is Match, and reports whether any pattern matched. If none did, the .gitignore of a
// parent directory decides.
func (ig Ignore) Verdict(p string, dir bool) (ignored, said bool) {
	for _, r := range slices.Backward(ig) { // the last one counts
		if (dir || !r.dirOnly) && r.Glob.Match(p) {
			return !r.keep, true
		}
	}
	return false, false
}

// Covers reports whether a directory, or one above it, is ignored.
func (ig Ignore) Covers(p string) bool {
	for i, c := range p {
		if c == '/' && ig.Match(p[:i], true) {
			return true
		}
	}
	return ig.Match(p, true)
}

// Ignores holds the .gitignore files of a directory and of those above it, the nearest last. The
// zero value ignores nothing.
type Ignores []located

// located is a .gitignore and the directory that it applies to: "" or a path that ends with a slash.
type located struct {
	dir   string
	rules Ignore
}

// With returns the rules for a directory, whose own .gitignore is rules. dir is "" or its path with
// a slash at the end. The receiver stays as it is.
func (all Ignores) With(dir string, rules Ignore) Ignores {
	if len(rules) == 0 {
		return all
	}
	return append(slices.Clip(all), located{dir, rules})
}

// Match reports whether a path is ignored, provided that no directory above it is. dir says that
// the path is a directory. The nearest .gitignore that matches the path decides.
func (all Ignores) Match(p string, dir bool) bool {
	for _, l := range slices.Backward(all) {
		if ignored, matched := l.rules.Verdict(strings.TrimPrefix(p, l.dir), dir); matched {
			return ignored
		}
	}
	return false
}
