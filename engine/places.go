package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxPlace      = 4096 // bytes of a path that is followed; the system takes no longer one
	maxPlaceLinks = 40   // symbolic links in one path, as in Linux
)

// places are what a path may mean: what it says, and where that leads. They are absolute and clean. There are none if it cannot be
// followed.
func places(cwd, name string) []string {
	if !filepath.IsAbs(name) {
		name = cwd + string(filepath.Separator) + name // not joined: what leads up, leads up from where a link leads
	}
	real, ok := follow(name)
	if !ok {
		return nil
	}
	return []string{filepath.Clean(name), real}
}

// follow is where an absolute path leads: through symbolic links, as the system goes, also to what is not there yet.
func follow(name string) (at string, ok bool) {
	if len(name) > maxPlace {
		return "", false
	}
	at, todo := steps(name)
	for links := 0; len(todo) > 0; {
		next := filepath.Join(at, todo[0]) // at is clean and without links, so that .. leads to what is above
		todo = todo[1:]
		target, err := os.Readlink(next)
		if err != nil {
			at = next // no link, or nothing there
			continue
		}
		if links++; links > maxPlaceLinks {
			return "", false
		}
		var rest []string
		if filepath.IsAbs(target) {
			at, rest = steps(target)
		} else {
			_, rest = steps(target)
		}
		todo = slices.Concat(rest, todo)
	}
	return at, true
}

// steps takes a path apart: where it begins if it is absolute, and the names to go through.
func steps(name string) (root string, names []string) {
	volume := filepath.VolumeName(name)
	return volume + string(filepath.Separator), strings.Split(filepath.ToSlash(name[len(volume):]), "/")
}

// inAny tells whether anything that a path may mean is in the place of a rule.
func inAny(at, rule []string) bool {
	return slices.ContainsFunc(at, func(name string) bool { return inPlace(name, rule) })
}

// inAll tells whether all that a path may mean is in the place of a rule.
func inAll(at, rule []string) bool {
	return len(at) > 0 && !slices.ContainsFunc(at, func(name string) bool { return !inPlace(name, rule) })
}

// inPlace tells whether a path is the place of a rule, or below it.
func inPlace(name string, rule []string) bool {
	return slices.ContainsFunc(rule, func(top string) bool {
		_, ok := wayTo(name, top)
		return ok
	})
}

// leadsTo tells whether the place of a rule is below anything that a path may mean, and not in a directory that is skipped there.
func leadsTo(at, rule []string, skips string) bool {
	return slices.ContainsFunc(rule, func(name string) bool {
		return slices.ContainsFunc(at, func(top string) bool {
			way, ok := wayTo(name, top)
			return ok && (skips == "" || !slices.Contains(way, skips))
		})
	})
}

// wayTo is the way from a path to what is below it, or the path itself.
func wayTo(name, top string) (way []string, ok bool) {
	const separator = string(filepath.Separator)
	if name == top {
		return nil, true
	}
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(top, separator)+separator)
	return strings.Split(rest, separator), ok
}

// caseless are places of which case tells nothing: there are file systems that do not see it.
func caseless(all []string) []string {
	lower := make([]string, len(all))
	for i, p := range all {
		lower[i] = strings.ToLower(p)
	}
	return lower
}
