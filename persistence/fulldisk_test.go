package persistence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// TestFullDisk needs a small file system of its own, whose root LASHD_SMALL_DISK names: a tmpfs of 24 MiB, say.
func TestFullDisk(t *testing.T) {
	disk := os.Getenv("LASHD_SMALL_DISK")
	if disk == "" {
		t.Skip("LASHD_SMALL_DISK does not name a small file system")
	}
	dir := must(os.MkdirTemp(disk, "store"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := open(t, dir)
	commit(t, s, rootCommit("ses_a"))
	commit(t, s, &Commit{Session: "ses_a", Turns: []Turn{{ID: "trn_1", State: protocol.TurnQueued}}})
	for begin := time.Now(); fileSize(s.ballast.path) != ballastSize; time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("no ballast was made")
		}
	}
	filler := filepath.Join(dir, "filler")
	f := must(os.Create(filler))
	for chunk := make([]byte, 64<<10); ; {
		if _, err := f.Write(chunk); err != nil {
			break
		}
	}
	f.Close()

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
		if time.Since(freed) > 10*time.Second {
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
