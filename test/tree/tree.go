// Package tree reads directories, for tests that say what they are to hold.
package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Read is what is in a directory: by path in slash form, the mode and a space, and the text of a file or the target of a link.
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
