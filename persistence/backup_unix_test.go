//go:build unix

package persistence

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// backupEnv names the data directory and the target of a backup that a copy of this test binary makes, until it is killed.
const backupEnv = "LASHD_TEST_BACKUP"

func init() { children[backupEnv] = backUpAndHang }

func backUpAndHang() {
	dir, target, _ := strings.Cut(os.Getenv(backupEnv), "\n")
	s, err := Open(context.Background(), quiet(dir))
	if err != nil {
		panic(err)
	}
	go s.Run(context.Background())
	_, err = s.Backup(context.Background(), target)
	panic(err) // not reached: the file of a blob is a pipe without a writer
}

// withLargeBlobs is a data directory with two blobs in files.
func withLargeBlobs(t *testing.T) (dir string, blobs []protocol.Digest) {
	s, stop := start(t, quiet(t.TempDir()))
	commit(t, s, rootCommit("ses_a"))
	for i := range 2 {
		b := must(s.PrepareBlob(make([]byte, inlineBlob+1+i)))
		commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{b}})
		blobs = append(blobs, b.Digest)
	}
	stop()
	return s.Dir(), blobs
}

// killedBackup leaves the files of a backup that is killed while it copies blobs.
func killedBackup(t *testing.T, dir string, blob protocol.Digest, target string) (left string) {
	t.Helper()
	file := newBlobFiles(filepath.Join(dir, blobsName)).path(blob)
	data := must(os.ReadFile(file))
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), backupEnv+"="+dir+"\n"+target)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		// The pipe blocks the copy of the blob forever.
		if copied := partials(t, target, fileName+".part"); len(copied) > 0 {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatal("the backup does not begin")
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	found := partials(t, target, "")
	if len(found) != 1 {
		t.Fatalf("the killed backup left %q", found)
	}
	return found[0]
}

// partials are the partial backups beside a target, which have a file.
func partials(t *testing.T, target, file string) []string {
	return must(filepath.Glob(filepath.Join(filepath.Dir(target), partialPrefix+"*", file)))
}

func TestKilledBackup(t *testing.T) {
	t.Run("outside/16 the next start removes the directory of a killed backup", func(t *testing.T) {
		dir, blobs := withLargeBlobs(t)
		target := filepath.Join(t.TempDir(), "copy")
		left := killedBackup(t, dir, blobs[0], target)
		_, stop := start(t, quiet(dir))
		stop() // waits for the cleaning up
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s is still there", left)
		}
		if records := must(filepath.Glob(filepath.Join(dir, recordPrefix+"*"))); len(records) > 0 {
			t.Errorf("records left: %q", records)
		}
	})
	t.Run("outside/16 the next backup removes the directory of a killed one, but not of one that is running", func(t *testing.T) {
		dir, blobs := withLargeBlobs(t)
		target := filepath.Join(t.TempDir(), "copy")
		left := killedBackup(t, dir, blobs[0], target)
		other := open(t, t.TempDir())
		working := must(newPartial(other.cfg.Dir, filepath.Dir(target)))
		defer working.close()
		s := open(t, t.TempDir())
		if report, err := s.Backup(t.Context(), target); err != nil || len(report.Missing) > 0 {
			t.Fatal(report, err)
		}
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s is still there", left)
		}
		if now := partials(t, target, ""); !slices.Equal(now, []string{working.path}) {
			t.Errorf("there is %q, want %q", now, working.path)
		}
	})
	t.Run("outside/16 a record that names another directory removes nothing", func(t *testing.T) {
		dir, _ := withLargeBlobs(t)
		kept := filepath.Join(t.TempDir(), "kept")
		if err := os.Mkdir(kept, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, recordPrefix+"x"), []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stop := start(t, quiet(dir))
		stop()
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	})
}

func TestIncompleteBackup(t *testing.T) {
	t.Run("outside/16 a backup copies intact data and reports missing and damaged files and rows", func(t *testing.T) {
		dir, blobs := withLargeBlobs(t)
		files := newBlobFiles(filepath.Join(dir, blobsName))
		third := func() protocol.Digest {
			s, stop := start(t, quiet(dir))
			defer stop()
			b := must(s.PrepareBlob(make([]byte, inlineBlob+9)))
			commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{b}})
			return b.Digest
		}()
		if err := os.Remove(files.path(blobs[0])); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files.path(blobs[1]), []byte("other bytes"), 0o600); err != nil {
			t.Fatal(err)
		}
		tamper(t, dir, "UPDATE sessions SET title = 'flipped'")
		s := open(t, dir)
		target := filepath.Join(t.TempDir(), "copy")
		report, err := s.Backup(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, d := range blobs {
			want = append(want, "blobs/"+string(d[:2])+"/"+string(d))
		}
		slices.Sort(want)
		if !slices.Equal(report.Missing, want) {
			t.Errorf("missing %q, want %q", report.Missing, want)
		}
		if len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "session ses_a: row session 1 of table sessions") {
			t.Errorf("problems %q", report.Problems)
		}
		copied := open(t, target)
		if data, err := copied.Blob(t.Context(), third); err != nil || len(data) != inlineBlob+9 {
			t.Errorf("%d bytes of the file that was there, %v", len(data), err)
		}
	})
}
