package content

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Remove removes a directory with all that is in it, such as copies, although its directories may not be written. It is no
// error if there is none.
func Remove(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700) // WalkDir reads it only then
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// persist has what was written to a file, or the names in a directory, outlive the system.
func persist(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// fewFiles are those that are synced one by one; with more of them it is faster to sync all of the file system.
const fewFiles = 64

// flush has a directory with all that is in it outlive the system.
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

// starved tells whether something could not be read for no fault of its own.
func starved(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
