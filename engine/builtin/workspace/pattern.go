package workspace

import (
	"strings"

	"lashd/internal/glob"
)

// compile refuses a pattern that cannot be understood.
func compile(pattern string) (glob.Glob, error) {
	g, err := glob.Compile(pattern)
	if err != nil {
		err = refuse("invalid_pattern", "%s", err)
	}
	return g, err
}

// ignore is the patterns of the workspace's own .gitignore. Those of directories below, and the user's, are not read.
type ignore []ignoreRule

type ignoreRule struct {
	glob.Glob
	dirOnly, keep bool
}

func parseIgnore(text string) ignore {
	var rules ignore
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		var r ignoreRule
		line, r.keep = strings.CutPrefix(line, "!")
		line, r.dirOnly = strings.CutSuffix(line, "/")
		anchored := strings.Contains(line, "/")
		g, err := glob.Compile(line)
		if err != nil {
			continue // git too lets a pattern that makes no sense match nothing
		}
		r.Glob = g
		if anchored {
			r.Glob = g.Anchored()
		}
		rules = append(rules, r)
	}
	return rules
}

func (ig ignore) match(p string, dir bool) bool {
	ignored := false
	for _, r := range ig {
		if (dir || !r.dirOnly) && r.Match(p) {
			ignored = !r.keep
		}
	}
	return ignored
}

// covers says whether p or a directory above it is ignored.
func (ig ignore) covers(p string) bool {
	for i, c := range p {
		if c == '/' && ig.match(p[:i], true) {
			return true
		}
	}
	return ig.match(p, true)
}
