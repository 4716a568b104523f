// Package pathresolve finds the file that a path leads to, as the system does when it opens it.
//
// All of lashd that follows a path of a workspace does it here, by path (Real, Follow) or through open directories (Way, Dir, EnterRoot), so
// that approval rules, file tools, file points, prompts and the watch of plugins agree on what a path means. Files of a workspace are opened
// to be read by OpenRegular. Functions and methods can be used concurrently.
package pathresolve

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxPath = 4096 // bytes of a path that is followed; the system takes no longer one

	// MaxLinks is how many symbolic links a path may lead through, as in Linux.
	MaxLinks = 40
)

// ErrLoop means that a path has too many symbolic links.
var ErrLoop = errors.New("too many symbolic links")

// Places are what a path may mean: what it says, and where that leads. They are absolute and clean. There are none if it cannot be
// followed.
type Places []string

// Of are the places of a path. One that is not absolute begins in dir.
func Of(dir, name string) Places {
	name = absolute(dir, name)
	real, err := Real(name)
	if err != nil {
		return nil
	}
	return Places{filepath.Clean(name), real}
}

// absolute does not join: a .. after a link leads up from where the link leads.
func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + string(filepath.Separator) + name
}

// In tells whether all that a path may mean is in a place, or below it. What cannot be followed is nowhere.
func (at Places) In(place Places) bool {
	return len(at) > 0 && !slices.ContainsFunc(at, func(name string) bool { return !inPlace(name, place) })
}

// MayBeIn tells whether anything that a path may mean is in a place or below it, in whatever case, or cannot be known.
func (at Places) MayBeIn(place Places) bool {
	if len(at) == 0 || len(place) == 0 {
		return true
	}
	place = place.caseless()
	return slices.ContainsFunc(at.caseless(), func(name string) bool { return inPlace(name, place) })
}

// MayHold tells whether a place may be below a path, and not in a directory that is skipped there.
func (at Places) MayHold(place Places, skips string) bool {
	tops := at.caseless()
	return slices.ContainsFunc(place.caseless(), func(name string) bool {
		return slices.ContainsFunc(tops, func(top string) bool {
			way, ok := wayTo(name, top)
			return ok && (skips == "" || !slices.Contains(way, skips))
		})
	})
}

func inPlace(name string, place Places) bool {
	return slices.ContainsFunc(place, func(top string) bool {
		_, ok := wayTo(name, top)
		return ok
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
func (at Places) caseless() Places {
	lower := make(Places, len(at))
	for i, p := range at {
		lower[i] = strings.ToLower(p)
	}
	return lower
}
