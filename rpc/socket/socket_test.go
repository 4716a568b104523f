//go:build unix

package socket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(role, os.Args[1:])
		return
	}
	goleak.VerifyTestMain(m)
}

// home is a short private directory: t.TempDir would be too long for a socket address.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lashd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func mustAcquire(t *testing.T, dir string) *Lock {
	t.Helper()
	l, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Release() })
	return l
}

func mustListen(t *testing.T, lock *Lock, path string) *Listener {
	t.Helper()
	l, err := Listen(lock, path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// greet answers every connection with "hi" until l is closed.
func greet(t *testing.T, l net.Listener) {
	t.Helper()
	done := make(chan error)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				done <- err
				return
			}
			io.WriteString(conn, "hi")
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept ended with %v, want net.ErrClosed", err)
		}
	})
}

func greeting(t *testing.T, path string) string {
	t.Helper()
	conn, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func checkMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Error(err)
	} else if got := info.Mode(); got != want {
		t.Errorf("mode of %s is %s, want %s", path, got, want)
	}
}

func TestListenAndDial(t *testing.T) {
	defer unix.Umask(unix.Umask(0)) // the worst a user may have
	dir := home(t)
	data, path := filepath.Join(dir, "state", "data"), filepath.Join(dir, "run", "lashd", "s")
	if _, err := Dial(t.Context(), path); !errors.Is(err, ErrNotListening) {
		t.Errorf("Dial before Listen: %v, want ErrNotListening", err)
	}
	lock := mustAcquire(t, data)
	l := mustListen(t, lock, path)
	greet(t, l)
	if got := greeting(t, path); got != "hi" {
		t.Errorf("read %q, want %q", got, "hi")
	}
	if got := l.Addr().String(); got != path {
		t.Errorf("Addr is %s, want %s", got, path)
	}

	checkMode(t, data, os.ModeDir|0o700)
	checkMode(t, filepath.Dir(path), os.ModeDir|0o700)
	checkMode(t, path, os.ModeSocket|0o600)
	for _, dir := range []string{data, filepath.Dir(path)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v, %v; want 0600", entry.Name(), info.Mode(), err)
			}
		}
	}

	if err := l.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close the socket is still there (%v)", err)
	}
}

func TestDialASocketWithoutListener(t *testing.T) {
	path := filepath.Join(home(t), "s")
	leaveStale(t, path)
	if _, err := Dial(t.Context(), path); !errors.Is(err, ErrNotListening) {
		t.Errorf("Dial a stale socket: %v, want ErrNotListening", err)
	}
}

// leaveStale makes the socket of a daemon that crashed.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := home(t)
	path := filepath.Join(dir, "s")
	leaveStale(t, path)
	leaveStale(t, path+"~") // crashed before the rename
	greet(t, mustListen(t, mustAcquire(t, dir), path))
	if got := greeting(t, path); got != "hi" {
		t.Errorf("read %q, want %q", got, "hi")
	}
}

func TestOnlySocketsAreReplaced(t *testing.T) {
	dir := home(t)
	lock := mustAcquire(t, dir)
	for _, name := range []string{"s", "s~"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := Listen(lock, filepath.Join(dir, "s"), slog.New(slog.DiscardHandler)); err == nil {
			l.Close()
			t.Errorf("Listen replaces the file %s", name)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != "precious" {
			t.Errorf("%s now reads %q, %v", name, data, err)
		}
		os.Remove(file)
	}
	mustListen(t, lock, filepath.Join(dir, "s")) // the failures left nothing locked
}

func TestLiveSocketIsNotStolen(t *testing.T) {
	path := filepath.Join(home(t), "s")
	greet(t, mustListen(t, mustAcquire(t, home(t)), path))
	l, err := Listen(mustAcquire(t, home(t)), path, slog.New(slog.DiscardHandler))
	if err == nil {
		l.Close()
		t.Fatal("a second data directory takes over the socket of the first")
	}
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Pid != os.Getpid() || held.Socket != path {
		t.Errorf("Listen: %v, want a HeldError with pid %d and socket %s", err, os.Getpid(), path)
	}
	if got := greeting(t, path); got != "hi" {
		t.Errorf("read %q, want %q", got, "hi")
	}
}

func TestCloseKeepsTheSocketOfAnotherDaemon(t *testing.T) {
	path := filepath.Join(home(t), "run", "s")
	first := mustListen(t, mustAcquire(t, home(t)), path)
	// Like a cleanup job of runtime directories: it removes the path's lock too, so a second daemon may bind.
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	greet(t, mustListen(t, mustAcquire(t, home(t)), path))
	binding := path + "~" // as if a third were about to appear
	leaveStale(t, binding)
	if err := first.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := os.Lstat(binding); err != nil {
		t.Errorf("the old listener removed a socket that has its temporary name: %v", err)
	}
	if got := greeting(t, path); got != "hi" {
		t.Errorf("after the old listener closed, read %q, want %q", got, "hi")
	}
}

func TestMissingSocketIsRecreated(t *testing.T) {
	for name, remove := range map[string]func(path string) error{
		"the socket":    os.Remove,
		"its directory": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"a socket with a stale one in its place": func(path string) error {
			os.Remove(path)
			leaveStale(t, path)
			return nil
		},
	} {
		t.Run("issue/2 the listener recreates "+name, func(t *testing.T) {
			data, path := home(t), filepath.Join(home(t), "run", "s")
			l := mustListen(t, mustAcquire(t, data), path)
			greet(t, l)
			for range 2 {
				if err := remove(path); err != nil {
					t.Fatal(err)
				}
				awaitSocket(t, l)
				if got := greeting(t, path); got != "hi" {
					t.Errorf("read %q, want %q", got, "hi")
				}
			}
			checkMode(t, filepath.Dir(path), os.ModeDir|0o700)
			checkMode(t, path, os.ModeSocket|0o600)
			if _, err := acquire(path+".lock", ""); err == nil {
				t.Error("the path is not locked any more")
			}
		})
	}
}

// awaitSocket waits until the path of l leads to its socket.
func awaitSocket(t *testing.T, l *Listener) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		l.mu.Lock()
		file := l.file
		l.mu.Unlock()
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, file) {
			return
		}
		if time.Since(began) > 5*checkInterval {
			t.Fatal("the socket was not created again")
		}
	}
}

func TestSocketOfAnotherDaemonIsNotTakenBack(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, path string) func() error{
		"issue/2 another daemon": func(t *testing.T, path string) func() error {
			l, err := Listen(mustAcquire(t, home(t)), path, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			go l.Accept()
			return l.Close
		},
		"issue/2 another program": func(t *testing.T, path string) func() error {
			l, err := listenUnix(path)
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return errors.Join(l.Close(), os.Remove(path)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(home(t), "run", "s")
			var log bytes.Buffer
			l, err := Listen(mustAcquire(t, home(t)), path, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			release := take(t, path)
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				l.restoreFile()
			}
			if now, err := os.Lstat(path); err != nil || !os.SameFile(now, before) {
				t.Errorf("the socket of another was replaced (%v)", err)
			}
			if n := strings.Count(log.String(), "cannot be created yet"); n != 1 {
				t.Errorf("%d lines about it, want 1: %s", n, &log)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			greet(t, l)
			awaitSocket(t, l)
			if got := greeting(t, path); got != "hi" {
				t.Errorf("once the other one has gone, read %q, want %q", got, "hi")
			}
		})
	}
}

func TestPathTooLong(t *testing.T) {
	dir := home(t)
	lock := mustAcquire(t, dir)
	fits := filepath.Join(dir, strings.Repeat("x", maxPath-len(dir)-1))
	greet(t, mustListen(t, lock, fits))
	if got := greeting(t, fits); got != "hi" {
		t.Errorf("a path of %d bytes: read %q, want %q", len(fits), got, "hi")
	}
	_, listenErr := Listen(lock, fits+"x", slog.New(slog.DiscardHandler))
	_, dialErr := Dial(t.Context(), fits+"x")
	for _, err := range []error{listenErr, dialErr} {
		if err == nil || !strings.Contains(err.Error(), "101 bytes, but the limit is 100; set LASHD_SOCKET") {
			t.Errorf("a path of 101 bytes: %v", err)
		}
	}
}

func TestOtherUserIsRefusedByListener(t *testing.T) {
	dir := home(t)
	var log bytes.Buffer
	l, err := Listen(mustAcquire(t, dir), filepath.Join(dir, "s"), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l.uid++ // now we are the other user
	done := make(chan error)
	go func() {
		_, err := l.Accept()
		done <- err
	}()
	if got := greeting(t, l.path); got != "" {
		t.Errorf("read %q, want nothing", got)
	}
	l.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v, want net.ErrClosed", err)
	}
	if n := l.Refused(); n != 1 || !strings.Contains(log.String(), "connection refused") {
		t.Errorf("Refused = %d, log %q; want 1 and a line", n, &log)
	}
}

func TestAcceptSurvivesLackOfDescriptors(t *testing.T) {
	dir := home(t)
	l := mustListen(t, mustAcquire(t, dir), filepath.Join(dir, "s"))
	client, err := Dial(t.Context(), l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	free := exhaustDescriptors(t)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var accepting sync.WaitGroup
	accepting.Go(func() {
		defer cancel()
		conn, err := l.Accept()
		if err != nil {
			t.Errorf("Accept: %v", err)
			return
		}
		conn.Close()
	})
	time.Sleep(50 * time.Millisecond) // real time: the kernel has to refuse a few times
	if ctx.Err() != nil {
		t.Error("Accept returned while there were no descriptors")
	}
	free()
	<-ctx.Done()
	if ctx.Err() != context.Canceled {
		t.Error("Accept did not return within 10s after descriptors were freed")
	}
	l.Close()
	accepting.Wait()
}

// exhaustDescriptors uses all file descriptors of the process until free is called.
func exhaustDescriptors(t *testing.T) (free func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	free = sync.OnceFunc(func() {
		for _, file := range files {
			file.Close()
		}
		unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	})
	t.Cleanup(free)
	for {
		file, err := os.Open(os.DevNull)
		if errors.Is(err, unix.EMFILE) {
			return free
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
}

func TestNextPause(t *testing.T) {
	var pause, total time.Duration
	for range 9 {
		pause = nextPause(pause)
		total += pause
	}
	if first := nextPause(0); first != 5*time.Millisecond || pause != time.Second || total != 2275*time.Millisecond {
		t.Errorf("first pause %s, ninth %s, together %s; want 5ms, 1s, 2.275s", first, pause, total)
	}
}
