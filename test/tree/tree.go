// Package tree reads directories, for tests that compare their contents.
package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Read returns the contents of a directory by path, with slashes: the mode, a space, and the text of a
// file or the target of a link.
func Read(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err == nil {
			all[filepath.ToSlash(rel)], err = entry(file, d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// entry describes one file. Directories and special files have only a mode.
func entry(file string, d fs.DirEntry) (string, error) {
	fi, err := d.Info()
	if err != nil {
		return "", err
	}
	text := ""
	switch {
	case fi.Mode().IsRegular():
		var data []byte
		data, err = os.ReadFile(file)
		text = string(data)
	case fi.Mode()&fs.ModeSymlink != 0:
		text, err = os.Readlink(file)
	}
	return fi.Mode().String() + " " + text, err
}
