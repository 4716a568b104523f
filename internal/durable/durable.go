// Package durable makes changes of files survive a power loss. The store, the key store, the configuration and the installation use it.
// All functions are safe for concurrent use.
//
// Windows has no call that makes names durable; its file system journals renames. Sync and Root do nothing there.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Sync makes a file, or the names in a directory, durable.
func Sync(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Root is Sync for a directory that is open.
func Root(dir *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Replace gives the file at path new contents and a mode, in one step: after a crash it has the earlier contents or the new ones. They are
// durable when Replace returns. Until then they are in the file next of the same directory, which only the user can read. A file of that name
// that a crash left is removed first, so two calls must not have the same next at the same time.
func Replace(path, next string, data []byte, mode fs.FileMode) error {
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(next) // no effect after the rename
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return Sync(filepath.Dir(path))
}
