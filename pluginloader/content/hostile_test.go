//go:build unix

package content_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lashd/test/skip"
)

// hostile makes one thing in the directory of a plugin. An error that is wanted is what Put says; if none is, the copy is as
// the directory.
var hostile = map[string]struct {
	make func(at func(string) string) error
	want string
}{
	"a pipe":   {func(at func(string) string) error { return syscall.Mkfifo(at("s"), 0o644) }, "s is neither a file nor a directory nor a link"},
	"a socket": {func(at func(string) string) error { return socket(at("s")) }, "s is neither a file nor a directory nor a link"},
	"a pipe in place of the manifest": {func(at func(string) string) error {
		return errors.Join(os.Remove(at("plugin.json")), syscall.Mkfifo(at("plugin.json"), 0o644))
	}, "plugin.json is neither a file nor a directory nor a link"},
	"a link to a file outside":      {func(at func(string) string) error { return os.Symlink("../../../../etc/passwd", at("l")) }, "the link l to ../../../../etc/passwd must lead"},
	"a link to an absolute path":    {func(at func(string) string) error { return os.Symlink("/etc/passwd", at("l")) }, "the link l to /etc/passwd must lead"},
	"a link to itself by its path":  {func(at func(string) string) error { return os.Symlink(at("a"), at("l")) }, "the link l to /"},
	"a link to a directory outside": {func(at func(string) string) error { return os.Symlink("..", at("l")) }, "the link l to .. must lead"},
	"a link to nothing":             {func(at func(string) string) error { return os.Symlink("none", at("l")) }, "the link l to none must lead"},
	"a link to itself":              {func(at func(string) string) error { return os.Symlink("l", at("l")) }, "the link l to l must lead"},
	"a link that goes out and back": {func(at func(string) string) error { return os.Symlink("../p/a", at("l")) }, "the link l to ../p/a must lead"},
	"a manifest that is a link out": {func(at func(string) string) error {
		return errors.Join(os.Remove(at("plugin.json")), os.Symlink("/etc/passwd", at("plugin.json")))
	}, "plugin.json"},
	"links in a circle": {func(at func(string) string) error {
		return errors.Join(os.Symlink("y", at("x")), os.Symlink("x", at("y")))
	}, "the link "},
	"a file for whoever runs it":     {func(at func(string) string) error { return os.Chmod(at("a"), 0o755|os.ModeSetuid) }, "a has the set-user-id or set-group-id bit"},
	"a file for a group":             {func(at func(string) string) error { return os.Chmod(at("a"), 0o755|os.ModeSetgid) }, "a has the set-user-id or set-group-id bit"},
	"11,000 files":                   {func(at func(string) string) error { return many(at, 11_000) }, "the directory has more than 10000 files"},
	"40 directories in one another":  {func(at func(string) string) error { return os.MkdirAll(at(strings.Repeat("d/", 40)), 0o755) }, "there are more than 32 directories inside one another"},
	"70 MiB in a file that are none": {func(at func(string) string) error { return sparse(at("big"), 70<<20) }, "big: a file has at most 67108864 bytes"},
	"no plugin at all":               {func(at func(string) string) error { return os.Remove(at("plugin.json")) }, "plugin.json: missing"},
	"a program that is not there": {func(at func(string) string) error {
		return os.WriteFile(at("plugin.json"), []byte(`{"name": "p", "lashd": {"process": {"command": ["none"]}}}`), 0o644)
	}, `the program "none": not found`},

	"a name with a newline":             {func(at func(string) string) error { return os.WriteFile(at("a\nb\x1b[31m"), nil, 0o644) }, ""},
	"a name that is no text":            {func(at func(string) string) error { return os.WriteFile(at("a\xff\xfe"), nil, 0o644) }, ""},
	"the longest name":                  {func(at func(string) string) error { return os.WriteFile(at(strings.Repeat("x", 255)), nil, 0o644) }, ""},
	"names that differ in case":         {func(at func(string) string) error { return os.WriteFile(at("PLUGIN.JSON"), []byte("{"), 0o644) }, ""},
	"a directory for a group":           {func(at func(string) string) error { return os.Chmod(at("d"), 0o775|os.ModeSetgid) }, ""},
	"a file that all may write":         {func(at func(string) string) error { return os.Chmod(at("a"), 0o666) }, ""},
	"a directory that all may write to": {func(at func(string) string) error { return os.Chmod(at("d"), 0o777|os.ModeSticky) }, ""},
	"the name of what the store writes": {func(at func(string) string) error { return os.WriteFile(at(".beyond.json"), []byte("{}"), 0o644) }, ""},
	"a link to the directory itself":    {func(at func(string) string) error { return os.Symlink(".", at("self")) }, ""},
	// A hard link is a file of the plugin like any other: its creator could read the file.
	"a hard link to a file outside": {func(at func(string) string) error {
		return errors.Join(os.WriteFile(at("../secret"), []byte("secret"), 0o600), os.Link(at("../secret"), at("h")))
	}, ""},
}

func socket(path string) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	return syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
}

// many makes files, which are links to one another because that is faster.
func many(at func(string) string, n int) error {
	if err := os.WriteFile(at("f"), nil, 0o644); err != nil {
		return err
	}
	for i := range n - 1 {
		if err := os.Link(at("f"), at(fmt.Sprint("f", i))); err != nil {
			return err
		}
	}
	return nil
}

func sparse(path string, size int64) error {
	return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, size))
}

func TestHostileDirectories(t *testing.T) {
	for name, c := range hostile {
		t.Run("reliability/T6 "+name, func(t *testing.T) {
			s, home := store(t)
			dir := files{"plugin.json": named, "a": "a", "d/b": "b"}.in(t, filepath.Join(short(t), "p"))
			check(t, c.make(func(name string) string { return filepath.Join(dir, name) }))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			copied, err := s.Put(ctx, dir)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				if left := entries(t, home); len(left) != 0 {
					t.Errorf("%q are left", left)
				}
				return
			}
			check(t, err)
			got := tree(t, copied.Root)
			for path, what := range tree(t, dir) {
				if at := strings.IndexByte(what, ' '); at >= 0 && !strings.HasPrefix(what, "link") {
					what = "-r--------" + what[at:]
				} else if at < 0 {
					what = "dr-x------"
				}
				if got[path] != what {
					t.Errorf("%q is %q, want %q", path, got[path], what)
				}
				delete(got, path)
			}
			if len(got) > 0 {
				t.Errorf("and there are %q", got)
			}
			check(t, open(s, copied.Digest))
		})
	}
}

// short is a temporary directory with a path that is short enough for a socket.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestADeviceIsNotCopied(t *testing.T) {
	s, _ := store(t)
	dir := files{"plugin.json": named}.in(t, t.TempDir())
	err := syscall.Mknod(filepath.Join(dir, "s"), syscall.S_IFCHR|0o600, 1<<8|5)
	skip.Unless(t, "MKNOD", !errors.Is(err, syscall.EPERM), "devices cannot be made here")
	check(t, err)
	if _, err := s.Put(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "s is neither a file nor a directory nor a link") {
		t.Errorf("got %v", err)
	}
}

// All files of a directory become others at one moment, over and over: a copy has those before it or those after it.
func TestAMixOfTwoVersionsIsNotCopied(t *testing.T) {
	t.Run("reliability/P13 replacing one version by another", func(t *testing.T) {
		s, _ := store(t)
		dir := files{"plugin.json": named}.in(t, filepath.Join(t.TempDir(), "p"))
		for _, version := range []string{"d", "../e"} {
			for i := range 30 {
				files{fmt.Sprint(i): version}.in(t, filepath.Join(dir, version))
			}
		}
		at := func(name string) string { return filepath.Join(dir, name) }
		stop := make(chan struct{})
		var changing sync.WaitGroup
		changing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(i%20) * 5 * time.Millisecond):
				}
				if err := errors.Join(os.Rename(at("d"), at("../x")), os.Rename(at("../e"), at("d")), os.Rename(at("../x"), at("../e"))); err != nil {
					t.Error(err)
					return
				}
			}
		})
		defer changing.Wait()
		defer close(stop)
		copied, least, limit := 0, time.Now().Add(time.Second), time.Now().Add(30*time.Second)
		for copied < 5 && time.Now().Before(limit) || time.Now().Before(least) {
			c, err := s.Put(t.Context(), dir)
			if err != nil {
				continue
			}
			copied++
			all := tree(t, c.Root)
			for i := range 30 {
				if got, want := all[fmt.Sprintf("d/%d", i)], all["d/0"]; got != want {
					t.Fatalf("file %d is %q, file 0 is %q", i, got, want)
				}
			}
		}
		if copied == 0 {
			t.Error("nothing was copied")
		}
	})
}
