package pluginloader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lashd/pluginloader/layout"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// Limits of one scan of a workspace for all its unapproved plugins together. The authors of the
// workspace control these files, so scanning must stay cheap.
const (
	maxUnapprovedEntries  = 20_000
	maxUnapprovedBytes    = 128 << 20
	maxUnapprovedPrograms = 1 << 30 // bytes of the programs and files outside the plugins that they name
	maxUnapprovedTime     = 5 * time.Second
	maxUnapprovedDirs     = 4_000 // watched directories of a workspace

	// restFactor is the pause before the next scan, in multiples of the time that the scan took.
	restFactor = 10
)

// allowance is what remains of the limits in one scan. It belongs to one goroutine.
type allowance struct {
	entries  int
	bytes    int64
	programs int64           // bytes
	seen     map[string]bool // programs that have been counted
}

// newAllowance returns the whole allowance of one scan.
func newAllowance() *allowance {
	return &allowance{maxUnapprovedEntries, maxUnapprovedBytes, maxUnapprovedPrograms, map[string]bool{}}
}

// errAllowance means that the limits are used up. Users see it as the plugin's problem.
var errAllowance = fmt.Errorf("not read: the untrusted plugins of this workspace have more than %d files or %d MiB, or take longer than %s to read",
	maxUnapprovedEntries, maxUnapprovedBytes>>20, maxUnapprovedTime)

// take subtracts from the allowance and returns errAllowance if it is used up.
func (a *allowance) take(entries int, bytes int64) error {
	a.entries, a.bytes = a.entries-entries, a.bytes-bytes
	if a.entries < 0 || a.bytes < 0 {
		return errAllowance
	}
	return nil
}

// measure returns the signature of a directory within the allowance. A nil allowance has the normal
// limits of a plugin.
func (a *allowance) measure(dir string, only layout.Selection) (string, error) {
	if a == nil {
		return watch.Signature(dir, only)
	}
	m, err := watch.Measure(dir, a.entries, only)
	if over := a.take(m.Entries, m.Bytes); over != nil {
		err = over
	}
	return m.Signature, err
}

// within returns a finder that counts the files it reads. With a nil allowance it is f.
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

// program counts a file outside the plugins, once per scan. It looks only at the size and reads
// nothing.
func (a *allowance) program(path string) error {
	if a.seen[path] {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > manifest.MaxProgram { // the digest rejects it without reading it
		return err
	}
	a.seen[path] = true
	if a.programs -= info.Size(); a.programs < 0 {
		return errAllowance
	}
	return nil
}

// bounded reports whether nothing was ever approved at the entry's directory, so the limits apply.
func (e *entry) bounded() bool {
	return e.set.scope == protocol.ScopeWorkspace && !e.set.loader.trust.Knows(e.dir)
}

// OutsideError means that a path of a workspace leads out of it.
type OutsideError struct {
	Path string
	Err  error
}

// Error names the path and what to do.
func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s is not read because it links outside the workspace (%v); copy the files to the workspace, or use a relative link within it", e.Path, e.Err)
}

func (e *OutsideError) Unwrap() error { return e.Err }

// inWorkspace returns an *OutsideError if a path leads out of the workspace through links. A
// missing path is fine, and so is one without permission, which is reported elsewhere.
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

// contained is inWorkspace for a path of the set. The user's plugins may be anywhere.
func (s *set) contained(path string) error {
	if s.scope != protocol.ScopeWorkspace {
		return nil
	}
	return inWorkspace(s.cwd, path)
}

// rest starts the pause of unapproved plugins after a scan that took some time. The pause is
// proportional, so a workspace takes a bounded share of a processor.
func (s *set) rest(took time.Duration) { s.resting = time.Now().Add(restFactor * took) }
