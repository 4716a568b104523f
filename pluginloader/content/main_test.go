//go:build unix

package content_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"lashd/pluginloader/content"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

func TestMain(m *testing.M) {
	if dirs := os.Getenv(putVariable); dirs != "" {
		putForEver(strings.Split(dirs, ":"))
		return
	}
	goleak.VerifyTestMain(m)
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// files are what a directory holds, by path.
type files map[string]string

// in writes files into a directory.
func (f files) in(t *testing.T, dir string) string {
	t.Helper()
	check(t, os.MkdirAll(dir, 0o755))
	for name, text := range f {
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

const named = `{"name": "reviewer", "lashd": {"prompt": [{"slot": "guidance", "content": "Be kind."}]}}`

// reviewer is a plugin.
func reviewer(t *testing.T) string {
	dir := files{"plugin.json": named, "bin/run": "#!/bin/sh\n", "lib/deep/a": "a", "lib/b": "b"}.in(t, filepath.Join(t.TempDir(), "dir"))
	check(t, os.Chmod(filepath.Join(dir, "bin/run"), 0o755), os.Symlink("../lib", filepath.Join(dir, "bin/lib")))
	return dir
}

// store is an empty store.
func store(t *testing.T) (*content.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plugins")
	return reopen(t, dir), dir
}

func reopen(t *testing.T, dir string) *content.Store {
	t.Helper()
	s, err := content.NewStore(dir, manifest.Finder{Look: nowhere})
	check(t, err)
	t.Cleanup(func() { writable(dir) })
	return s
}

// writable lets a directory be removed by others than root.
func writable(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
}

func nowhere(name string) (string, error) { return "", errors.New("not found") }

func put(t *testing.T, s *content.Store, dir string) content.Copy {
	t.Helper()
	c, err := s.Put(t.Context(), dir)
	check(t, err)
	return c
}

// tree is all that is in a directory, by path: mode, and content or where a link leads.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		check(t, err)
		rel, err := filepath.Rel(dir, path)
		check(t, err)
		what := info.Mode().String()
		switch info.Mode().Type() {
		case 0:
			text, err := os.ReadFile(path)
			check(t, err)
			what += " " + string(text)
		case fs.ModeSymlink:
			to, err := os.Readlink(path)
			check(t, err)
			what = "link " + to
		}
		all[rel] = what
		return nil
	}))
	return all
}

// entries are the names in a directory.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	all, err := os.ReadDir(dir)
	check(t, err)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func open(s *content.Store, d protocol.Digest) error {
	c, err := s.Open(context.Background(), d)
	if err == nil {
		c.Close()
	}
	return err
}
