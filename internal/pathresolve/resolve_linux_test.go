package pathresolve_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lashd/internal/pathresolve"
)

// kernel returns where the kernel goes by a path.
func kernel(name string) (string, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
}

func TestResolvesAsTheKernelDoes(t *testing.T) {
	t.Run("outside/7 random paths through links resolve as in the kernel", func(t *testing.T) {
		top, err := kernel(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"a", "b", "c", "f", "x", "y", "z", "..", ".", "none"}
		for _, dir := range []string{"a/b", "b/c", "c/a"} {
			if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(top, "a/f"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		path := func(n int) (p string) {
			for range n {
				p += "/" + names[random.IntN(len(names))]
			}
			return p
		}
		there := 0
		for range 3000 {
			link := filepath.Join(top, names[random.IntN(3)], names[4+random.IntN(3)])
			target := "." + path(1+random.IntN(3))
			if random.IntN(3) == 0 {
				target = top + path(1+random.IntN(3))
			}
			if err := errors.Join(os.RemoveAll(link), os.Symlink(target, link)); err != nil {
				t.Fatal(err)
			}
			name := top + path(1+random.IntN(4))
			want, wrong := kernel(name)
			got, _, err := pathresolve.Follow(name, nil)
			if (err == nil) != (wrong == nil) || err == nil && got != want {
				t.Errorf("Follow(%s) is %s, %v, but the kernel resolves it to %s, %v", name, got, err, want, wrong)
			}
			if wrong != nil {
				continue
			}
			there++
			if got, err := pathresolve.Real(name); err != nil || got != want {
				t.Errorf("Real(%s) is %s, %v, want %s", name, got, err, want)
			}
		}
		if there < 300 {
			t.Errorf("only %d paths led anywhere", there)
		}
	})
}

func TestOpenRegular(t *testing.T) {
	open := func(t *testing.T, dir, name string, between func()) (kept bool, err error) {
		t.Helper()
		d, err := pathresolve.OpenReal(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		is, err := d.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		between()
		f, err := d.OpenRegular(name, is, func(f *os.File) { kept = f.Close() == nil })
		if err == nil {
			f.Close()
		}
		return kept, err
	}
	nothing := func() {}
	t.Run("outside/10 a file that the kernel generates is not opened", func(t *testing.T) {
		proc := fmt.Sprintf("/proc/%d", os.Getpid())
		if _, err := open(t, proc, "status", nothing); !errors.Is(err, pathresolve.ErrKernelFile) {
			t.Errorf("in a directory: %v", err)
		}
		if _, err := pathresolve.OpenPath("/proc/self/status"); !errors.Is(err, pathresolve.ErrKernelFile) {
			t.Errorf("by its path: %v", err)
		}
	})
	t.Run("outside/10 a pipe is not opened, and one that replaces a file does not block", func(t *testing.T) {
		dir := t.TempDir()
		pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
		if err := errors.Join(unix.Mkfifo(pipe, 0o644), os.WriteFile(file, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, dir, "pipe", nothing); !errors.Is(err, pathresolve.ErrIrregular) {
			t.Errorf("error %v", err)
		}
		kept, err := open(t, dir, "file", func() {
			if err := os.Rename(pipe, file); err != nil {
				t.Fatal(err)
			}
		})
		if !errors.Is(err, pathresolve.ErrReplaced) || !kept {
			t.Errorf("error %v, given to whoever keeps it: %v", err, kept)
		}
	})
	t.Run("outside/7 a directory is not opened by a path that has got a link", func(t *testing.T) {
		dir := t.TempDir()
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.Symlink("a", filepath.Join(dir, "link"))); err != nil {
			t.Fatal(err)
		}
		if _, err := pathresolve.OpenReal(filepath.Join(dir, "link/b")); !errors.Is(err, pathresolve.ErrReplaced) {
			t.Errorf("error %v", err)
		}
	})
}
