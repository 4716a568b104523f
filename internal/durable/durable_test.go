package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"lashd/internal/durable"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, next := filepath.Join(dir, "a"), filepath.Join(dir, "a.next")
	check := func(t *testing.T, want string, mode os.FileMode) {
		t.Helper()
		got, err := os.ReadFile(path)
		if info, failed := os.Stat(path); err != nil || failed != nil || string(got) != want || info.Mode().Perm() != mode {
			t.Errorf("the file has %q with mode %v, %v; want %q with %v", got, info.Mode(), err, want, mode)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("the directory has %v, %v", all, err)
		}
	}
	t.Run("a new file has its contents and mode", func(t *testing.T) {
		if err := durable.Replace(path, next, []byte("one"), 0o640); err != nil {
			t.Fatal(err)
		}
		check(t, "one", 0o640)
	})
	t.Run("what a crash left is removed, and not written through", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "other")
		if err := os.Symlink(other, next); err != nil {
			t.Fatal(err)
		}
		if err := durable.Replace(path, next, []byte("two"), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, "two", 0o600)
		if _, err := os.Lstat(other); err == nil {
			t.Error("the file behind a link was written")
		}
	})
	t.Run("after a failure the file is as before and nothing is left", func(t *testing.T) {
		if err := durable.Replace(filepath.Join(dir, "none", "a"), next, []byte("three"), 0o600); err == nil {
			t.Error("a file in a directory that does not exist was written")
		}
		check(t, "two", 0o600)
	})
}

func TestSync(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for what, err := range map[string]error{"a directory": durable.Sync(dir), "an open directory": durable.Root(root)} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := durable.Sync(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}
