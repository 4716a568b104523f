package content

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Remove removes a directory tree, even if its directories are read-only, as those of copies are.
// It succeeds if there is nothing to remove.
func Remove(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700) // WalkDir reads the directory after this
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// persist syncs a file or directory, so that it survives a crash of the system.
func persist(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// fewFiles is the largest tree that is synced file by file. For larger trees, one sync of the whole
// file system is faster.
const fewFiles = 64

// flush syncs a directory tree, so that it survives a crash of the system. A published copy must be
// complete, because its digest is computed again only when it is opened.
func flush(dir string) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type().IsRegular()) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(paths) > fewFiles {
		if done, err := syncAll(dir); done || err != nil {
			return err
		}
	}
	for _, path := range paths {
		if err := persist(path); err != nil {
			return err
		}
	}
	return nil
}

// starved reports whether a read failed because of the system's state, not because of the copy.
// Such a copy must not count as damaged.
func starved(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
