package approval

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"lashd/engine/commandrule"
	"lashd/internal/glob"
	"lashd/internal/pathresolve"
)

// pathPattern is the path of a rule: a file, a directory with everything below it, or a pattern for them. The part before the first
// wildcard is resolved like any path; the rest is compared with names.
type pathPattern struct {
	start string // the part before the first wildcard, as written
	base  pathresolve.Places
	// rest matches the path below base, as written; caseless ignores case. Without wildcards there is none.
	rest, caseless *glob.Glob
	names          []string // names in the rest that each matching path has, in lower case
}

const wildcards = "*?[{"

// parsePath parses the path of a rule. Relative paths begin in dir.
func parsePath(dir, text string) (p pathPattern, broken bool) {
	text = strings.TrimSuffix(strings.TrimSuffix(text, "/**"), "/")
	if !strings.ContainsAny(text, wildcards) {
		return pathPattern{start: text, base: pathresolve.Of(dir, text)}, false
	}
	names := strings.Split(filepath.ToSlash(text), "/")
	at := slices.IndexFunc(names, func(name string) bool { return strings.ContainsAny(name, wildcards) })
	base := strings.Join(names[:at], "/")
	if base == "" && strings.HasPrefix(text, "/") {
		base = "/"
	}
	rest := strings.Join(names[at:], "/")
	exact, err1 := glob.Compile(rest)
	lower, err2 := glob.Compile(strings.ToLower(rest))
	exact, lower = exact.Anchored(), lower.Anchored()
	base = cmp.Or(base, ".")
	p = pathPattern{start: base, base: pathresolve.Of(dir, base), rest: &exact, caseless: &lower}
	for _, name := range names[at:] {
		if !strings.ContainsAny(name, wildcards+`\`) {
			p.names = append(p.names, strings.ToLower(name))
		}
	}
	return p, err1 != nil || err2 != nil
}

// current reports whether the base is still where the path leads.
func (p *pathPattern) current(dir string) bool {
	return slices.Equal(p.base, pathresolve.Of(dir, p.start))
}

// keys returns names in lower case, one of which each matching path has. There are none if the pattern cannot be resolved.
func (p *pathPattern) keys() (keys []string) {
	if len(p.names) > 0 {
		return p.names[len(p.names)-1:]
	}
	for _, at := range p.base {
		key := strings.ToLower(filepath.Base(at))
		if at == string(filepath.Separator) {
			key = "" // before the first separator of each path
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// covers reports whether all meanings of a path are what the pattern names. Rules that allow use it.
func (p *pathPattern) covers(at pathresolve.Places) bool {
	return len(at) > 0 && !slices.ContainsFunc(at, func(name string) bool { return !matches(name, p.base, p.rest) })
}

// touches reports whether any meaning of a path may be what the pattern names, ignoring case. Rules that ask or deny use it.
func (p *pathPattern) touches(at pathresolve.Places) bool {
	if len(at) == 0 || len(p.base) == 0 {
		return true
	}
	base := p.base.Caseless()
	return slices.ContainsFunc(at.Caseless(), func(name string) bool { return matches(name, base, p.caseless) })
}

// below returns whether a path that the pattern names may be below a directory, and not in a subdirectory named skips.
func (p *pathPattern) below(at pathresolve.Places, skips string) commandrule.Match {
	switch {
	case p.rest == nil && at.MayHold(p.base, skips):
		return commandrule.Yes
	case p.rest == nil || skips != "" && slices.Contains(p.names, skips):
		return commandrule.No
	case at.MayHold(p.base, skips) || at.MayBeIn(p.base):
		return commandrule.Maybe
	}
	return commandrule.No
}

// matches reports whether a path is in one of the places, and there matches the rest or is below something that does.
func matches(name string, base pathresolve.Places, rest *glob.Glob) bool {
	return slices.ContainsFunc(base, func(top string) bool {
		way, ok := pathresolve.Relative(name, top)
		if !ok || rest == nil {
			return ok
		}
		for end := range way + "/" {
			if (end == len(way) || way[end] == '/') && end > 0 && rest.Match(way[:end]) {
				return true
			}
		}
		return false
	})
}
