package pluginloader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// What one look at a workspace reads of plugins that nobody has approved, all together. Their authors decide what is there.
const (
	maxUnapprovedEntries  = 20_000
	maxUnapprovedBytes    = 128 << 20
	maxUnapprovedPrograms = 1 << 30 // bytes of the programs and files outside them that they name
	maxUnapprovedTime     = 5 * time.Second
	maxUnapprovedDirs     = 4_000 // that are watched, of a workspace

	// restFactor is how many times as long as it took to look at unapproved plugins nobody looks at them again.
	restFactor = 10
)

// allowance is what is left for unapproved plugins in one look. It belongs to one goroutine.
type allowance struct {
	entries  int
	bytes    int64
	programs int64           // bytes
	seen     map[string]bool // programs that were counted
}

func newAllowance() *allowance {
	return &allowance{maxUnapprovedEntries, maxUnapprovedBytes, maxUnapprovedPrograms, map[string]bool{}}
}

// errAllowance says that the allowance is used up.
var errAllowance = fmt.Errorf("not read: the untrusted plugins of this workspace have more than %d files or %d MiB, or take longer than %s to read",
	maxUnapprovedEntries, maxUnapprovedBytes>>20, maxUnapprovedTime)

// take uses some of the allowance.
func (a *allowance) take(entries int, bytes int64) error {
	a.entries, a.bytes = a.entries-entries, a.bytes-bytes
	if a.entries < 0 || a.bytes < 0 {
		return errAllowance
	}
	return nil
}

// measure is watch.Measure within the allowance; without one, of as much as a plugin may be.
func (a *allowance) measure(dir string) (string, error) {
	if a == nil {
		return watch.Signature(dir)
	}
	m, err := watch.Measure(dir, a.entries)
	if over := a.take(m.Entries, m.Bytes); over != nil {
		err = over
	}
	return m.Signature, err
}

// within has files outside a plugin be read within the allowance, too.
func (a *allowance) within(f manifest.Finder) manifest.Finder {
	if a == nil {
		return f
	}
	digest := f.Digest
	f.Digest = func(ctx context.Context, path string) (protocol.Digest, error) {
		if err := a.program(path); err != nil {
			return "", err
		}
		return digest(ctx, path)
	}
	return f
}

// program counts a file outside the plugins, once.
func (a *allowance) program(path string) error {
	if a.seen[path] {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > manifest.MaxProgram { // which is refused without reading it
		return err
	}
	a.seen[path] = true
	if a.programs -= info.Size(); a.programs < 0 {
		return errAllowance
	}
	return nil
}

// bounded tells whether nobody has approved anything in the place of an entry, so that looking at it has bounds.
func (e *entry) bounded() bool {
	return e.set.scope == protocol.ScopeWorkspace && !e.set.loader.trust.Knows(e.dir)
}

// OutsideError means that something in a workspace leads out of it.
type OutsideError struct {
	Path string
	Err  error
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s is not read because it links outside the workspace (%v); copy the files to the workspace, or use a relative link within it", e.Path, e.Err)
}

func (e *OutsideError) Unwrap() error { return e.Err }

// inWorkspace refuses a path of a workspace that leads out of it. Few links may be on the way.
func inWorkspace(cwd, path string) error {
	rest, err := filepath.Rel(cwd, path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(cwd)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Stat(rest); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return &OutsideError{Path: path, Err: err}
	}
	return nil
}

// contained is inWorkspace for a path of the set; what is the user's may lead anywhere.
func (s *set) contained(path string) error {
	if s.scope != protocol.ScopeWorkspace {
		return nil
	}
	return inWorkspace(s.cwd, path)
}

// rest has unapproved plugins rest after they were looked at, the longer the longer that took.
func (s *set) rest(took time.Duration) { s.resting = time.Now().Add(restFactor * took) }
