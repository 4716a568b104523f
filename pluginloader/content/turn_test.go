//go:build unix

package content

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/watch"
)

// The contents of a directory change all the time, in every way, without any pause. Whatever is copied was
// there.
func TestDirectoriesThatTurnHostileMeanwhile(t *testing.T) {
	for name, turn := range map[string]func(at func(string) string) error{
		"a file becomes a directory": func(at func(string) string) error {
			return errors.Join(os.Remove(at("d/f")), os.Mkdir(at("d/f"), 0o755), os.Remove(at("d/f")), os.WriteFile(at("d/f"), []byte("f"), 0o644))
		},
		"a file becomes a pipe": func(at func(string) string) error {
			return errors.Join(os.Remove(at("d/f")), syscall.Mkfifo(at("d/f"), 0o644), os.Remove(at("d/f")), os.WriteFile(at("d/f"), []byte("f"), 0o644))
		},
		"a directory becomes a pipe": func(at func(string) string) error {
			return errors.Join(os.Rename(at("d"), at("../d")), syscall.Mkfifo(at("d"), 0o644), os.Remove(at("d")), os.Rename(at("../d"), at("d")))
		},
		"a directory becomes a link out": func(at func(string) string) error {
			return errors.Join(os.Rename(at("d"), at("../d")), os.Symlink("../secrets", at("d")), os.Remove(at("d")), os.Rename(at("../d"), at("d")))
		},
		"a file becomes a link out": func(at func(string) string) error {
			return errors.Join(os.Symlink("../../secrets/f", at("l")), os.Rename(at("l"), at("d/f")), os.WriteFile(at("n"), []byte("f"), 0o644), os.Rename(at("n"), at("d/f")))
		},
		"the plugin becomes a pipe": func(at func(string) string) error {
			return errors.Join(os.Rename(at("."), at("../q")), syscall.Mkfifo(at("../p"), 0o644), os.Remove(at("../p")), os.Rename(at("../q"), at("../p")))
		},
		"the plugin becomes a link to secrets": func(at func(string) string) error {
			return errors.Join(os.Rename(at("."), at("../q")), os.Symlink("secrets", at("../p")), os.Remove(at("../p")), os.Rename(at("../q"), at("../p")))
		},
	} {
		t.Run("reliability/T6 "+name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			dir := filepath.Join(home, "p")
			err := errors.Join(os.MkdirAll(filepath.Join(dir, "d"), 0o755), os.Mkdir(filepath.Join(home, "secrets"), 0o755),
				os.WriteFile(filepath.Join(dir, "d/f"), []byte("f"), 0o644), os.WriteFile(filepath.Join(home, "secrets/f"), []byte("secret"), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			var turning sync.WaitGroup
			turning.Go(func() {
				at := func(name string) string { return filepath.Clean(dir + "/" + name) }
				for {
					select {
					case <-stop:
						return
					default:
						if err := turn(at); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
			defer turning.Wait()
			defer close(stop)
			for end := time.Now().Add(time.Second); time.Now().Before(end); {
				to := filepath.Join(home, "copy")
				done := make(chan error, 1)
				go func() {
					_, _ = watch.Signature(dir, nil)
					done <- copyTree(t.Context(), dir, to, nil)
				}()
				select {
				case <-done:
				case <-time.After(time.Minute):
					t.Fatal("it waits")
				}
				if text, err := inside(to, "d/f"); err == nil && text == "secret" {
					t.Fatal("the secret is copied")
				}
				if err := Remove(to); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// inside reads a file that is in a directory, and not behind a link that leads out of it.
func inside(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	text, err := root.ReadFile(name)
	return string(text), err
}

// A file that becomes too large during the copy is detected.
func TestNoMoreIsCopiedThanAPluginMayBe(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"reliability/T6 too deep": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 40)), 0o755) }, "there are more than 32 directories"},
		"reliability/T6 too many files": {func(dir string) error {
			err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644)
			for i := range 10_000 { // links are made faster than files
				err = errors.Join(err, os.Link(filepath.Join(dir, "f"), filepath.Join(dir, strconv.Itoa(i))))
			}
			return err
		}, "the directory has more than 10000 files"},
		"reliability/T6 a file that is too large": {func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "f"), nil, 0o644), os.Truncate(filepath.Join(dir, "f"), manifest.MaxContent+1))
		}, "f: a file has at most 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			if err := copyTree(t.Context(), dir, filepath.Join(t.TempDir(), "copy"), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestAllFilesOfAPluginTogetherAreBounded(t *testing.T) {
	t.Run("reliability/T6 one byte more", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		c := copier{bytes: manifest.MaxContents - 1}
		if err := c.permit("f", info); err != nil {
			t.Errorf("the last byte that there may be: %v", err)
		}
		if err := c.permit("f", info); err == nil {
			t.Error("one more may be")
		}
	})
}

// A file may have become a pipe between the check and the open.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	t.Run("reliability/T6 a pipe in place of a file", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(dir, "p"), 0o644); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		done := make(chan error, 1)
		go func() {
			c := copier{from: root, to: root}
			done <- c.file(t.Context(), "p")
		}()
		select {
		case err := <-done:
			if err == nil || err.Error() != "p is not a regular file" {
				t.Errorf("got %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it waits")
		}
	})
}
