//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"lashd/engine/proc"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// swapped is a workspace with a directory sub, and an outside directory that can replace it.
type swapped struct{ ws, outside string }

func newSwapped(t *testing.T) swapped {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := swapped{filepath.Join(top, "ws"), filepath.Join(top, "outside")}
	for _, dir := range []string{filepath.Join(s.ws, "sub"), s.outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// swap replaces sub by a link to the outside directory.
func (s swapped) swap() error {
	if err := os.Rename(filepath.Join(s.ws, "sub"), filepath.Join(s.ws, "was")); err != nil {
		return err
	}
	return os.Symlink(s.outside, filepath.Join(s.ws, "sub"))
}

func TestSwappedWorkdir(t *testing.T) {
	environ := []string{"PATH=" + os.Getenv("PATH")}
	for _, workdir := range []string{"sub", "DIR/sub", "./sub/../sub"} {
		t.Run("outside/7 a command starts in the directory that was opened: "+workdir, func(t *testing.T) {
			dirs := newSwapped(t)
			s := &shell{cwd: dirs.ws, environ: environ, nonce: t.Name(), reading: make(chan struct{}, 1)}
			opened, at, err := s.directory(tool.Invocation{}, strings.ReplaceAll(workdir, "DIR", dirs.ws))
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			if err := dirs.swap(); err != nil {
				t.Fatal(err)
			}
			out := s.run(t.Context(), tool.Invocation{Host: &host{}}, args{Command: "touch here && /bin/pwd"}, proc.Command{OpenDir: opened, Dir: at})
			if want := filepath.Join(dirs.ws, "was") + "\n[Exit code 0.]\n"; out.Text != want {
				t.Errorf("it ran with %q, want %q", out.Text, want)
			}
			if _, err := os.Stat(filepath.Join(dirs.ws, "was/here")); err != nil {
				t.Error(err)
			}
		})
	}
	for name, sees := range map[string]struct {
		place string
		ran   bool
	}{"leads where it did": {"sub", true}, "has come to lead elsewhere": {"other", false}} {
		t.Run("outside/7 a call approved for a directory runs only there: the path "+name, func(t *testing.T) {
			dirs := newSwapped(t)
			s := &shell{cwd: dirs.ws, environ: environ, nonce: t.Name(), reading: make(chan struct{}, 1)}
			call := tool.Invocation{Host: &host{}, Places: []string{filepath.Join(dirs.ws, sees.place)}}
			out := s.command(t.Context(), call, args{Command: "touch here", Workdir: "sub"})
			if _, err := os.Stat(filepath.Join(dirs.ws, "sub/here")); (err == nil) != sees.ran {
				t.Errorf("it ran: %v, want %v: %+v", err == nil, sees.ran, out)
			}
		})
	}
	t.Run("outside/7 a directory that is swapped continuously", func(t *testing.T) {
		dirs := newSwapped(t)
		s := &shell{cwd: dirs.ws, environ: environ, nonce: t.Name(), reading: make(chan struct{}, 1)}
		var swapping sync.WaitGroup
		stop := make(chan struct{})
		swapping.Go(func() { dirs.exchangeUntil(t, stop) })
		runs := 100
		if os.Getenv("LASHD_SWAPS") != "" {
			runs = 2000
		}
		ran := 0
		for range runs {
			out := s.command(t.Context(), tool.Invocation{Host: &host{}}, args{Command: "echo ran >ran", Workdir: "sub"})
			if out.Status == protocol.OutputSuccess {
				ran++
			}
		}
		close(stop)
		swapping.Wait()
		if _, err := os.Stat(filepath.Join(dirs.outside, "ran")); err == nil {
			t.Error("a command ran outside of the workspace")
		}
		t.Logf("%d of %d ran", ran, runs)
	})
}

// exchangeUntil alternates sub between a directory and a link, atomically.
func (s swapped) exchangeUntil(t *testing.T, stop chan struct{}) {
	sub, link := filepath.Join(s.ws, "sub"), filepath.Join(s.ws, "link")
	if err := os.Symlink(s.outside, link); err != nil {
		t.Error(err)
	}
	for {
		select {
		case <-stop:
			return
		default:
		}
		if err := unix.Renameat2(unix.AT_FDCWD, sub, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
			t.Errorf("exchange: %v", err)
			return
		}
	}
}
