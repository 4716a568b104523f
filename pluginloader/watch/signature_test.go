//go:build unix

package watch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/pluginloader/watch"
)

func signature(t *testing.T, dir string) string {
	t.Helper()
	s, err := watch.Signature(dir, nil)
	check(t, err)
	return s
}

func TestSignatureShowsEveryChange(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(realDir(t), "p")
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, "old", dir, "plugin.json")
	write(t, "old", dir, "a/b/c")
	check(t, os.Symlink("a", at("link")), os.Symlink("/none", at("out")))
	time.Sleep(50 * time.Millisecond)
	last := signature(t, dir)
	t.Run("issue/4-4 equal directories have equal signatures", func(t *testing.T) {
		content(t, dir) // to read is no change
		if again := signature(t, dir); again != last || len(last) != 64 {
			t.Errorf("%s and then %s", last, again)
		}
	})
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"a byte", func() error { return os.WriteFile(at("plugin.json"), []byte("new"), 0) }},
		{"a byte, in the same size and time", func() error {
			info, err := os.Stat(at("a/b/c"))
			check(t, err, os.WriteFile(at("a/b/c"), []byte("new"), 0))
			return os.Chtimes(at("a/b/c"), info.ModTime(), info.ModTime())
		}},
		{"a mode", func() error { return os.Chmod(at("a/b/c"), 0o600) }},
		{"the mode of a directory", func() error { return os.Chmod(at("a"), 0o700) }},
		{"a name", func() error { return os.Rename(at("a/b/c"), at("a/b/d")) }},
		{"a new file", func() error { return os.WriteFile(at("a/new"), nil, 0o644) }},
		{"a file less", func() error { return os.Remove(at("a/new")) }},
		{"where a link leads", func() error {
			check(t, os.Remove(at("link")))
			return os.Symlink("b", at("link"))
		}},
		{"another file with the same content", func() error {
			check(t, os.WriteFile(at("tmp"), []byte("new"), 0o644))
			return os.Rename(at("tmp"), at("plugin.json"))
		}},
	} {
		t.Run("issue/4-4 "+c.name, func(t *testing.T) {
			check(t, c.change())
			time.Sleep(50 * time.Millisecond)
			if now := signature(t, dir); now == last {
				t.Error("the signature is the same")
			} else {
				last = now
			}
		})
	}
}

// Two changes within a few milliseconds leave the same times, so no signature that was taken between them may stay.
func TestSignatureDoesNotStandForWhatJustChanged(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	for i := range 60 {
		write(t, fmt.Sprint(i%10), dir, "f")
		between := signature(t, dir)
		write(t, fmt.Sprint((i+1)%10), dir, "f")
		time.Sleep(30 * time.Millisecond)
		if signature(t, dir) == between {
			t.Fatal("a change is not seen")
		}
	}
}

func TestDirectoriesWithoutSignature(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"too many files": {func(t *testing.T, dir string) {
			write(t, "", dir, "f")
			for i := range 10_000 { // links are made faster than files
				check(t, os.Link(filepath.Join(dir, "f"), filepath.Join(dir, fmt.Sprint(i))))
			}
		}, "the directory has more than 10000 files"},
		"too deep":   {func(t *testing.T, dir string) { write(t, "", dir, strings.Repeat("d/", 40)+"f") }, "there are more than 32 directories"},
		"no, a pipe": {func(t *testing.T, dir string) { check(t, os.Remove(dir)); pipe(t, dir) }, "not a directory"},
		"none":       {func(t *testing.T, dir string) { check(t, os.Remove(dir)) }, "no such file"},
	} {
		t.Run("issue/4-4 "+name, func(t *testing.T) {
			dir := filepath.Join(realDir(t), "p")
			check(t, os.Mkdir(dir, 0o755))
			c.make(t, dir)
			if _, err := watch.Signature(dir, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
