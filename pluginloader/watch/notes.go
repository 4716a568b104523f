package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// notes has the system tell of directories, by path. A path may come to be another directory: then it is watched anew.
type notes struct {
	fs    *fsnotify.Watcher
	limit int // directories; 0: none of our own
	seen  map[string]os.FileInfo
}

// live are the paths that are watched in truth: those of directories that were moved or removed are not any more.
func (n *notes) live() map[string]bool {
	live := map[string]bool{}
	for _, path := range n.fs.WatchList() {
		live[path] = true
	}
	return live
}

// add watches a directory, and tells whether it was not watched before.
func (n *notes) add(dir string, live map[string]bool) (news bool, err error) {
	// Before it is watched: if another directory takes its place between the two, the next look watches that one.
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
	n.remove(dir) // else fsnotify leaves the watch of the directory that was there
	if n.limit > 0 && len(n.seen) >= n.limit {
		return false, fmt.Errorf("no more than %d directories are watched", n.limit)
	}
	if err := n.fs.Add(dir); err != nil {
		return false, fmt.Errorf("watch %s: %w", dir, err)
	}
	n.seen[dir] = info
	return true, nil
}

// remove has no failure to tell: what is not watched is as it should be.
func (n *notes) remove(dir string) {
	if n.seen[dir] != nil {
		_ = n.fs.Remove(dir)
		delete(n.seen, dir)
	}
}

// vanished tells whether a directory cannot be looked at because it is gone by now: whoever removed it made an event.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}
