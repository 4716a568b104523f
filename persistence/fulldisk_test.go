package persistence

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// smallDisk is a file system that is soon full: the one that LASHD_SMALL_DISK names, or a tmpfs.
func smallDisk(t *testing.T) string {
	t.Helper()
	if disk := os.Getenv("LASHD_SMALL_DISK"); disk != "" {
		return disk
	}
	disk := t.TempDir()
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk).CombinedOutput()
	skip.Unless(t, "MOUNT", err == nil, "LASHD_SMALL_DISK names no small file system, and none can be mounted: "+string(out))
	t.Cleanup(func() { exec.Command("umount", disk).Run() })
	return disk
}

func TestFullDisk(t *testing.T) {
	dir := must(os.MkdirTemp(smallDisk(t), "store"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := open(t, dir)
	commit(t, s, rootCommit("ses_a"))
	commit(t, s, &Commit{Session: "ses_a", Turns: []Turn{{ID: "trn_1", State: protocol.TurnQueued}}})
	filler := filepath.Join(dir, "filler")
	fill(t, filler)

	acked, full := 0, error(nil)
	for i := 0; full == nil && i < 10000; i++ {
		if _, full = s.Commit(t.Context(), rootCommit(protocol.SessionID(fmt.Sprint("ses_", i)))); full == nil {
			acked++
		}
	}
	if !errors.Is(full, ErrFull) || s.Healthy() != nil {
		t.Fatalf("commit gave %v, health %v", full, s.Healthy())
	}
	if row := session(t, s, "ses_a"); row.Seq != 0 { // reads work
		t.Error(row)
	}
	commit(t, s, &Commit{Session: "ses_a", Turns: []Turn{{ID: "trn_1", State: protocol.TurnFailed}}, Events: []Event{{"x", make([]byte, 200<<10)}}})
	if !errors.Is(s.Space(), ErrFull) {
		t.Errorf("space: %v", s.Space())
	}
	refuse(t, s, rootCommit("ses_b"), ErrFull)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	freed := time.Now()
	for _, err := s.Commit(t.Context(), rootCommit("ses_b")); err != nil; _, err = s.Commit(t.Context(), rootCommit("ses_b")) {
		if time.Since(freed) > time.Minute {
			t.Fatalf("still refused: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("%d commits before the disk was full; resumed %v after there was space", acked, time.Since(freed).Round(time.Millisecond))
	if n, err := s.CountSessions(t.Context()); n != acked+2 || err != nil {
		t.Errorf("%d sessions, want %d: %v", n, acked+2, err)
	}
	verified(t, s)
}

func TestOpenOnAFullDisk(t *testing.T) {
	t.Run("issue/2 on a full disk the reserved space is released and no new work starts", func(t *testing.T) {
		dir := must(os.MkdirTemp(smallDisk(t), "store"))
		t.Cleanup(func() { os.RemoveAll(dir) })
		s, stop := start(t, quiet(dir))
		commit(t, s, rootCommit("ses_a"))
		stop()
		filler := filepath.Join(dir, "filler")
		fill(t, filler)

		s = open(t, dir)
		if !errors.Is(s.Space(), ErrFull) {
			t.Errorf("space: %v", s.Space())
		}
		refuse(t, s, rootCommit("ses_b"), ErrFull)
		if row := session(t, s, "ses_a"); row.Seq != 0 {
			t.Error(row)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		for freed := time.Now(); s.Space() != nil; time.Sleep(20 * time.Millisecond) {
			if time.Since(freed) > time.Minute {
				t.Fatal("there is space, and still it is full")
			}
		}
		commit(t, s, rootCommit("ses_b"))
	})
}

func TestBallastBeforeWrites(t *testing.T) {
	t.Run("outside/16 the ballast exists before the first write is acknowledged", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		if n := fileSize(s.ballast.path); n != ballastSize {
			t.Errorf("the ballast has %d bytes, want %d", n, ballastSize)
		}
	})
	t.Run("outside/16 on a disk without space for the ballast no new work starts", func(t *testing.T) {
		dir := must(os.MkdirTemp(smallDisk(t), "store"))
		t.Cleanup(func() { os.RemoveAll(dir) })
		filler := filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, 12<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		refuse(t, s, rootCommit("ses_a"), ErrFull)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		for freed := time.Now(); s.Space() != nil; time.Sleep(20 * time.Millisecond) {
			if time.Since(freed) > time.Minute {
				t.Fatal("there is space, and still it is full")
			}
		}
		commit(t, s, rootCommit("ses_a"))
	})
}

// fill makes a file that leaves no space on its disk.
func fill(t *testing.T, path string) {
	t.Helper()
	f := must(os.Create(path))
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
