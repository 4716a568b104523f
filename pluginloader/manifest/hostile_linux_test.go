package manifest_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lashd/internal/pathresolve"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

func TestAPipeInPlaceOfAManifestIsNotWaitedFor(t *testing.T) {
	root := files{}.root(t)
	if err := syscall.Mkfifo(filepath.Join(root.Name(), "plugin.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := within(t, 10*time.Second, func() error {
		_, err := manifest.Load(root)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "plugin.json: plugin.json is not a regular file") {
		t.Errorf("got %v", err)
	}
}

func TestSpecialFilesHaveNoDigest(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"reliability/T6 a pipe": func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"reliability/T6 a socket": func(path string) error {
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer syscall.Close(fd)
			return syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
		},
		"reliability/T6 a device": func(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|5) },
	} {
		t.Run(name, func(t *testing.T) {
			root := files{}.root(t)
			err := make(filepath.Join(root.Name(), "s"))
			skip.Unless(t, "MKNOD", !errors.Is(err, syscall.EPERM), "devices cannot be made here")
			if err != nil {
				t.Fatal(err)
			}
			done := within(t, 10*time.Second, func() error {
				_, err := manifest.Digest(t.Context(), root, manifest.Beyond{})
				return err
			})
			if done == nil || done.Error() != "s is neither a file nor a directory nor a link" {
				t.Errorf("got %v", done)
			}
		})
	}
}

// within waits so long for an answer.
func within(t *testing.T, limit time.Duration, call func() error) error {
	t.Helper()
	answer := make(chan error, 1)
	go func() { answer <- call() }()
	select {
	case err := <-answer:
		return err
	case <-time.After(limit):
		t.Fatal("it does not answer")
		return nil
	}
}

// A name is changed all the time: two files, a pipe, a link, nothing. Whatever digest comes out is of what was there at some
// time, and nothing is waited for.
func TestDigestOfWhatChangesMeanwhile(t *testing.T) {
	root := files{"other": "x"}.root(t)
	at := func(name string) string { return filepath.Join(root.Name(), name) }
	put := func(content string) error {
		return errors.Join(os.WriteFile(at("../f"), bytes.Repeat([]byte(content), 1<<20), 0o644), os.Rename(at("../f"), at("f")))
	}
	link := func() error { return errors.Join(os.Symlink("other", at("../l")), os.Rename(at("../l"), at("f"))) }
	known := map[protocol.Digest]bool{digest(t, root, manifest.Beyond{}): true}
	for _, make := range []func() error{func() error { return put("1") }, func() error { return put("2") }, link} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		known[digest(t, root, manifest.Beyond{})] = true
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			switch i % 4 {
			case 0:
				_ = put("1")
			case 1:
				_ = os.Remove(at("f"))
				_ = syscall.Mkfifo(at("f"), 0o644)
			case 2:
				_ = put("2")
			case 3:
				_ = link()
			}
		}
	})
	defer wait.Wait()
	defer close(stop)
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		var got protocol.Digest
		err := within(t, 10*time.Second, func() (err error) {
			got, err = manifest.Digest(t.Context(), root, manifest.Beyond{})
			return err
		})
		if err == nil && !known[got] {
			t.Fatalf("the digest %s is of nothing that was there", got)
		}
	}
}

func TestKernelFiles(t *testing.T) {
	t.Run("outside/10 a kernel file is not read as a program", func(t *testing.T) {
		for _, path := range []string{"/proc/self/status", "/sys/kernel/uevent_seqnum"} {
			if _, err := os.Stat(path); err != nil {
				continue // a container may not have it
			}
			if _, err := manifest.DigestOf(t.Context(), path); !errors.Is(err, pathresolve.ErrKernelFile) {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}
