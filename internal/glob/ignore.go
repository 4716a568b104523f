package glob

import (
	"slices"
	"strings"
)

// Ignore is the patterns of one .gitignore, for paths from the directory that it lies in.
type Ignore []ignoreRule

type ignoreRule struct {
	Glob
	dirOnly, keep bool
}

// ParseIgnore reads a .gitignore. A pattern that makes no sense matches nothing, as in git.
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

// Match tells whether a path is ignored, if nothing above it is.
func (ig Ignore) Match(p string, dir bool) bool {
	ignored, _ := ig.Verdict(p, dir)
	return ignored
}

// Verdict is Match, and tells whether a pattern says so: the .gitignore of a directory further up counts where none does.
func (ig Ignore) Verdict(p string, dir bool) (ignored, said bool) {
	for _, r := range slices.Backward(ig) { // the last one counts
		if (dir || !r.dirOnly) && r.Glob.Match(p) {
			return !r.keep, true
		}
	}
	return false, false
}

// Covers says whether a directory, or one above it, is ignored.
func (ig Ignore) Covers(p string) bool {
	for i, c := range p {
		if c == '/' && ig.Match(p[:i], true) {
			return true
		}
	}
	return ig.Match(p, true)
}
