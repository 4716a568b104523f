//go:build unix

package socket

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/test/skip"
)

// roleVariable makes the test binary play a part in another process, with its arguments, instead of running tests.
const roleVariable = "SOCKET_TEST_ROLE"

func play(role string, args []string) {
	switch role {
	case "daemon":
		playDaemon(args[0], args[1])
	case "client":
		playClient(args[0])
	case "impostor":
		playImpostor(args[0])
	default:
		panic("unknown role " + role)
	}
}

// playDaemon holds the lock and listens until it is killed. Its child lives on until their common stdin ends.
func playDaemon(data, path string) {
	lock, err := Acquire(data)
	if err != nil {
		panic(err)
	}
	l, err := Listen(lock, path, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	child := exec.Command("cat")
	child.Stdin = os.Stdin
	if err := child.Start(); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	for {
		if _, err := l.Accept(); err != nil {
			panic(err)
		}
	}
}

// playClient prints what it can read from a socket that it dials without any checks.
func playClient(path string) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println("dial:", err)
		return
	}
	text, err := io.ReadAll(conn)
	fmt.Printf("read %q, %v\n", text, err)
}

// playImpostor listens, and greets every client.
func playImpostor(path string) {
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	for {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		io.WriteString(conn, "hi")
		conn.Close()
	}
}

// launch starts cmd, waits until it is ready, and kills it at the end of the test.
func launch(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { crash(cmd) })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s says %q, %v; want ready", cmd.Args, line, err)
	}
}

func crash(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

func role(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+name, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestSecondDaemonLearnsOfTheFirst(t *testing.T) {
	dir := home(t)
	path := filepath.Join(dir, "s")
	stdin, keepsChild, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer keepsChild.Close()
	first := role("daemon", dir, path)
	first.Stdin = stdin
	launch(t, first)
	stdin.Close()

	began := time.Now()
	_, err = Acquire(dir)
	took := time.Since(began)
	want := fmt.Sprintf("another lashd holds %s/lashd.lock, pid %d, listening on %s", dir, first.Process.Pid, path)
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Error() != want {
		t.Errorf("Acquire: %v, want %q", err, want)
	}
	if took >= 10*time.Second {
		t.Errorf("Acquire took %s, want less than ten seconds, on a slow machine", took)
	}

	t.Run("outside/15 the holder is reported even without its info file", func(t *testing.T) {
		if err := os.Remove(filepath.Join(dir, "lashd.lock.json")); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("another lashd holds %s/lashd.lock, pid %d", dir, first.Process.Pid)
		if runtime.GOOS != "linux" {
			want = fmt.Sprintf("another lashd holds %s/lashd.lock, pid unknown; find it with: lsof %[1]s", dir)
		}
		if _, err := Acquire(dir); err == nil || err.Error() != want {
			t.Errorf("Acquire: %v, want %q", err, want)
		}
	})

	crash(first) // its child is alive, and must not have inherited the lock
	l := mustListen(t, mustAcquire(t, dir), path)
	greet(t, l)
	if got := greeting(t, path); got != "hi" {
		t.Errorf("after a crash, read %q, want %q", got, "hi")
	}
}

func TestDirectoryInPlaceOfALockFile(t *testing.T) {
	for _, name := range []string{"lashd.lock", "lashd.lock.json", "lashd.lock.json~"} {
		t.Run("outside/15 a directory "+name+" must be moved away", func(t *testing.T) {
			dir := home(t)
			path := filepath.Join(dir, name)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			want := path + " is a directory, but lashd stores a file there; move the directory away"
			if _, err := Acquire(dir); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("Acquire: %v, want %q", err, want)
			}
		})
	}
}

func TestOneOfManyGetsTheLock(t *testing.T) {
	dir := filepath.Join(home(t), "not", "yet", "there")
	var wg sync.WaitGroup
	locks := make([]*Lock, 50)
	errs := make([]error, len(locks))
	for i := range locks {
		wg.Go(func() { locks[i], errs[i] = Acquire(dir) })
	}
	wg.Wait()
	var winners int
	for i, lock := range locks {
		if lock != nil {
			winners++
			defer lock.Release()
			continue
		}
		if held, ok := errors.AsType[*HeldError](errs[i]); !ok || held.Pid != os.Getpid() {
			t.Errorf("a loser gets %v, want a HeldError with pid %d", errs[i], os.Getpid())
		}
	}
	if winners != 1 {
		t.Errorf("%d of %d have the lock, want 1", winners, len(locks))
	}
}

func TestHolderWithoutInfoFile(t *testing.T) {
	dir := home(t)
	lock := mustAcquire(t, dir)
	// The info file still names a crashed daemon: its pid is that of a process that has exited.
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	stale := fmt.Sprintf(`{"pid":%d,"socket":"/gone"}`, gone.Process.Pid)
	if err := os.WriteFile(lock.infoPath(), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	named := make(chan error)
	go func() {
		time.Sleep(50 * time.Millisecond)
		named <- lock.publish("/here")
	}()
	_, err := Acquire(dir)
	if err := <-named; err != nil {
		t.Fatal(err)
	}
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Pid != os.Getpid() || held.Socket != "/here" {
		t.Errorf("Acquire: %v, want the name that the holder published later", err)
	}
}

func TestCopiedInfoFile(t *testing.T) {
	t.Run("outside/12 a holder that has not published itself yet is not taken for the holder of the original", func(t *testing.T) {
		original, copied := home(t), home(t)
		published, err := os.ReadFile(publishing(t, original, "/original").infoPath())
		if err != nil {
			t.Fatal(err)
		}
		lock, err := Hold(copied)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Release()
		if err := os.WriteFile(lock.infoPath(), published, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Address(copied); got != "" {
			t.Errorf("the copy is reached at %q", got)
		}
		if held, ok := errors.AsType[*HeldError](errOf(Acquire(copied))); !ok || held.Socket != "" {
			t.Errorf("Acquire: %v, want a HeldError without a socket", held)
		}
	})
	t.Run("outside/12 the daemon of a directory that was moved is still found", func(t *testing.T) {
		dir := home(t)
		publishing(t, dir, "/moved")
		if err := os.Rename(dir, dir+"2"); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir + "2")
		if got := Address(dir + "2"); got != "/moved" {
			t.Errorf("it is reached at %q, want /moved", got)
		}
	})
}

// publishing holds the lock of a directory and publishes a socket.
func publishing(t *testing.T, dir, socket string) *Lock {
	t.Helper()
	lock := mustAcquire(t, dir)
	if err := lock.publish(socket); err != nil {
		t.Fatal(err)
	}
	return lock
}

func errOf[T any](_ T, err error) error { return err }

func TestDeletedLockFiles(t *testing.T) {
	for _, gone := range [][]string{{lockName}, {lockName + ".json"}, {lockName, lockName + ".json"}} {
		t.Run(fmt.Sprintf("outside/15 the directory is still locked without %s", gone), func(t *testing.T) {
			dir := home(t)
			stdin, keepsChild, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer keepsChild.Close()
			first := role("daemon", dir, filepath.Join(dir, "s"))
			first.Stdin = stdin
			launch(t, first)
			stdin.Close()
			for _, name := range gone {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Acquire(dir); err == nil {
				t.Error("a second process has the lock")
			} else if _, ok := errors.AsType[*HeldError](err); !ok {
				t.Errorf("Acquire: %v, want a HeldError", err)
			}
			crash(first)
			mustAcquire(t, dir)
		})
	}
}

func TestHolderThatNeverPublishes(t *testing.T) {
	dir := home(t)
	lock, err := Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("outside/15 the directory contains %v, %v; want nothing", left, err)
	}
	_, err = Acquire(dir)
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Pid != 0 && held.Pid != os.Getpid() {
		t.Errorf("outside/15 Acquire beside it: %v, want a HeldError", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, dir)
	if _, err := Hold(dir); err == nil {
		t.Error("outside/15 Hold succeeds beside a holder")
	}
}

func TestReleasedLockIsFree(t *testing.T) {
	dir := home(t)
	for range 3 {
		lock, err := Acquire(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 || filepath.Base(left[0]) != lockName {
		t.Errorf("after Release the directory contains %v, %v; want only %s", left, err, lockName)
	}
}

func TestLockOnAFullDisk(t *testing.T) {
	dir := home(t)
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", dir).CombinedOutput()
	skip.Unless(t, "MOUNT", err == nil, "no small file system can be mounted: "+string(out))
	t.Cleanup(func() { exec.Command("umount", dir).Run() })
	t.Run("issue/2 the lock is taken, and no other holder is named", func(t *testing.T) {
		stale := filepath.Join(dir, lockName+".json")
		if err := os.WriteFile(stale, fmt.Appendf(nil, `{"pid":%d,"socket":"/elsewhere"}`, os.Getppid()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 64<<10), 0o600); err == nil {
			t.Fatal("the disk is not full")
		}
		lock := mustAcquire(t, dir)
		_, err := Acquire(dir)
		if held, ok := errors.AsType[*HeldError](err); !ok || held.Pid != os.Getpid() || held.Socket != "" {
			t.Errorf("Acquire: %v, want a HeldError that names pid %d and no socket", err, os.Getpid())
		}
		path := filepath.Join(dir, "run", "s")
		greet(t, mustListen(t, lock, path))
		if got := greeting(t, path); got != "hi" {
			t.Errorf("read %q, want %q", got, "hi")
		}
	})
}
