//go:build unix

package content

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// flips exchange a good file with an evil one, and back. Both have the same size, and the same times where those can be set.
var flips = []func(at func(string) string) error{
	func(at func(string) string) error { return errors.Join(write(at("run"), evil), write(at("run"), good)) },
	func(at func(string) string) error {
		return errors.Join(write(at("tmp"), evil), os.Rename(at("tmp"), at("run")), write(at("tmp"), good), os.Rename(at("tmp"), at("run")))
	},
	func(at func(string) string) error {
		return errors.Join(os.Rename(at("run"), at("../good")), os.Symlink("evil", at("run")), os.Rename(at("../good"), at("run")))
	},
}

var (
	good = bytes.Repeat([]byte("good "), 20_000)
	evil = bytes.Repeat([]byte("evil "), 20_000)
)

// write writes in place, without a moment in which the file is empty.
func write(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	before, statErr := os.Stat("/")
	return errors.Join(err, f.Close(), statErr, os.Chtimes(path, before.ModTime(), before.ModTime()))
}

// The copy is made while the file changes, without a look whether it did: what has the approved digest has the approved bytes.
func TestWhatHasTheApprovedDigestIsWhatWasApproved(t *testing.T) {
	t.Run("reliability/T6 copying while the contents are exchanged", func(t *testing.T) {
		rounds := 300
		if os.Getenv("LASHD_LONG") != "" {
			rounds = 2000
		}
		dir, copies := filepath.Join(t.TempDir(), "p"), t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		if err := errors.Join(os.Mkdir(dir, 0o755), write(at("run"), good), write(at("evil"), evil)); err != nil {
			t.Fatal(err)
		}
		approved := copied(t, dir, filepath.Join(copies, "approved"))
		defer func() { _ = Remove(filepath.Join(copies, "approved")) }()
		stop := make(chan struct{})
		var flipping sync.WaitGroup
		flipping.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					if err := flips[i/100%len(flips)](at); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
		defer flipping.Wait()
		defer close(stop)
		same, others := 0, 0
		for i := range rounds {
			to := filepath.Join(copies, fmt.Sprint(i))
			d := copied(t, dir, to)
			text, err := os.ReadFile(filepath.Join(to, "run"))
			switch {
			case d == "" || d != approved:
				others++
			case err != nil || !bytes.Equal(text, good):
				t.Fatalf("copy %d has the approved digest, and %.20q, %v", i, text, err)
			default:
				same++
			}
			if err := Remove(to); err != nil {
				t.Fatal(err)
			}
		}
		if same == 0 || others == 0 {
			t.Errorf("%d copies are good, %d are not: that shows nothing", same, others)
		}
	})
}

// copied copies a directory, and gives the digest of the copy if there is one.
func copied(t *testing.T, from, to string) protocol.Digest {
	if err := copyTree(t.Context(), from, to, nil); err != nil {
		return ""
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	d, err := manifest.Digest(t.Context(), root, manifest.Beyond{})
	if err != nil {
		return ""
	}
	return d
}
