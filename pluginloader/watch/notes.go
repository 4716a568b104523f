package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// notes manages the fsnotify watches by path. If another directory takes over a path, notes
// replaces the watch. It belongs to the goroutine of Watcher.Run.
type notes struct {
	fs    *fsnotify.Watcher
	limit int                    // watched directories; 0: as many as the system allows
	seen  map[string]os.FileInfo // the directory that is watched at each path
}

// live returns the paths that fsnotify still watches. It drops directories that were moved or
// removed.
func (n *notes) live() map[string]bool {
	live := map[string]bool{}
	for _, path := range n.fs.WatchList() {
		live[path] = true
	}
	return live
}

// add watches a directory. It reports whether the directory was not watched before, so that changes
// in it may have been missed.
func (n *notes) add(dir string, live map[string]bool) (news bool, err error) {
	// Lstat comes first: if another directory takes the path between the two calls, the next scan watches that one.
	info, err := os.Lstat(dir)
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, fmt.Errorf("%s: %w", dir, syscall.ENOTDIR)
	}
	before := n.seen[dir]
	if before != nil && live[dir] && os.SameFile(before, info) {
		return false, nil
	}
	n.remove(dir) // otherwise fsnotify keeps the watch of the previous directory
	if n.limit > 0 && len(n.seen) >= n.limit {
		return false, fmt.Errorf("no more than %d directories are watched", n.limit)
	}
	if err := n.fs.Add(dir); err != nil {
		return false, fmt.Errorf("watch %s: %w", dir, err)
	}
	n.seen[dir] = info
	return true, nil
}

// remove stops watching a directory. An error means that it is not watched any more.
func (n *notes) remove(dir string) {
	if n.seen[dir] != nil {
		_ = n.fs.Remove(dir)
		delete(n.seen, dir)
	}
}

// vanished reports whether a directory cannot be read because it is gone. Its removal caused an
// event.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}
