// Package pathresolve finds the file that a path leads to, as the system does when it opens the
// path.
//
// All of lashd follows workspace paths with this package: by path (Real, Follow) or through open
// directories (Way, Dir, EnterRoot). Approval rules, file tools, file points, prompts and the
// plugin watcher therefore agree on the meaning of a path. OpenRegular opens workspace files for
// reading. Functions and methods are safe for concurrent use, except those of Way.
package pathresolve

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of a path.
const (
	maxPath = 4096 // bytes; the system accepts no longer path

	// MaxLinks is the maximum number of symbolic links in a path, as in Linux.
	MaxLinks = 40
)

// ErrLoop means that a path has too many symbolic links.
var ErrLoop = errors.New("too many symbolic links")

// Places are the possible meanings of a path: the path as written, and where it leads. Both are
// absolute and clean. There are none if the path cannot be followed.
type Places []string

// Of returns the places of a path. A relative path begins in dir.
func Of(dir, name string) Places {
	name = absolute(dir, name)
	real, err := Real(name)
	if err != nil {
		return nil
	}
	return Places{filepath.Clean(name), real}
}

// absolute joins without cleaning: a .. after a link leads to the parent of the link's target.
func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + string(filepath.Separator) + name
}

// In reports whether all meanings of a path are a place or below it. It is false for a path that
// cannot be followed. Use it to allow something.
func (at Places) In(place Places) bool {
	return len(at) > 0 && !slices.ContainsFunc(at, func(name string) bool { return !inPlace(name, place) })
}

// MayBeIn reports whether any meaning of a path may be a place or below it, ignoring case. It is
// true if a path cannot be followed. Use it to deny something.
func (at Places) MayBeIn(place Places) bool {
	if len(at) == 0 || len(place) == 0 {
		return true
	}
	place = place.Caseless()
	return slices.ContainsFunc(at.Caseless(), func(name string) bool { return inPlace(name, place) })
}

// MayHold reports whether a place may be below a path, and not in a subdirectory named skips, which
// is left out there. An empty skips leaves out nothing.
func (at Places) MayHold(place Places, skips string) bool {
	tops := at.Caseless()
	return slices.ContainsFunc(place.Caseless(), func(name string) bool {
		return slices.ContainsFunc(tops, func(top string) bool {
			way, ok := wayTo(name, top)
			return ok && (skips == "" || !slices.Contains(way, skips))
		})
	})
}

// inPlace reports whether a path is a place or below it.
func inPlace(name string, place Places) bool {
	return slices.ContainsFunc(place, func(top string) bool {
		_, ok := wayTo(name, top)
		return ok
	})
}

// wayTo returns the names that lead from top to name. ok is false if name is not top or below it.
func wayTo(name, top string) (way []string, ok bool) {
	const separator = string(filepath.Separator)
	if name == top {
		return nil, true
	}
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(top, separator)+separator)
	return strings.Split(rest, separator), ok
}

// Relative returns the path from top to name, with slashes; empty if they are the same. ok is false if name is not top or below it.
func Relative(name, top string) (way string, ok bool) {
	if name == top {
		return "", true
	}
	const separator = string(filepath.Separator)
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(top, separator)+separator)
	return filepath.ToSlash(rest), ok
}

// Caseless returns the places in lower case, because some file systems ignore case.
func (at Places) Caseless() Places {
	lower := make(Places, len(at))
	for i, p := range at {
		lower[i] = strings.ToLower(p)
	}
	return lower
}
