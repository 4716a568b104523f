package filepoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lashd/internal/pathresolve"
)

func TestOpenIgnoreFiles(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"another file": func(path string) error { return os.WriteFile(path, []byte("kept\n"), 0o644) },
		"a pipe":       func(path string) error { return unix.Mkfifo(path, 0o644) },
	} {
		t.Run("outside/10 no rules are read from a .gitignore that is replaced during the scan by "+name, func(t *testing.T) {
			s := newScene(t)
			s.write(".gitignore", "other\n")
			k := &walker{Workspace: s.Workspace, index: NewIndex(nil), rules: map[string]ignoreFile{}}
			dir, err := pathresolve.Begin(s.root)
			s.ok(err)
			defer dir.Close()
			is, err := dir.Stat(ignoreName)
			s.ok(err)
			s.ok(replace(filepath.Join(s.dir, "next")))
			s.ok(os.Rename(filepath.Join(s.dir, "next"), filepath.Join(s.dir, ignoreName)))
			if rules := k.parseIgnores(dir, is); rules.Match("kept", false) {
				t.Error("the rules of another file were read")
			}
		})
	}
	t.Run("outside/10 generated files of the kernel are not read, not even as .gitignore", func(t *testing.T) {
		w, err := Open(fmt.Sprintf("/proc/%d", os.Getpid()), "")
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		dir, err := pathresolve.Begin(w.root)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		is, err := dir.Stat("status")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.open(dir, "status", is); !errors.Is(err, pathresolve.ErrKernelFile) {
			t.Errorf("error %v", err)
		}
	})
}
