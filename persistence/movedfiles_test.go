//go:build linux

package persistence

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestFilesThatGo(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		saved bool
	}{
		{"log is removed", []string{"rm", "lashd.db-wal"}, true},
		{"log is moved", []string{"mv", "lashd.db-wal", "elsewhere"}, true},
		{"log is replaced by something", []string{"sh", "-c", "rm lashd.db-wal; echo x > lashd.db-wal"}, false},
		{"database is removed", []string{"rm", "lashd.db"}, false},
		{"database is replaced", []string{"sh", "-c", "cp lashd.db other; mv other lashd.db"}, false},
		{"directory is moved", []string{"sh", "-c", "mv $PWD $PWD.moved"}, false},
	} {
		for _, busy := range []bool{true, false} {
			name := map[bool]string{true: "at the next commit", false: "while it is idle"}[busy]
			t.Run("outside/15 a store whose "+c.name+" stops "+name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "data")
				s := must(Open(t.Context(), quiet(dir)))
				ran := make(chan error, 1)
				go func() { ran <- s.Run(t.Context()) }()
				commit(t, s, rootCommit("ses_a"))
				cmd := exec.Command(c.args[0], c.args[1:]...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if busy {
					if _, err := s.Commit(t.Context(), &Commit{Session: "ses_a", Events: []Event{event(1)}}); !errors.Is(err, ErrPoisoned) {
						t.Fatalf("commit gave %v", err)
					}
				} else {
					s.look <- struct{}{}
				}
				moved, ok := errors.AsType[*MovedError](<-ran)
				if !ok || moved.Saved != c.saved {
					t.Fatalf("Run ends with %v", moved)
				}
				if err := errors.Join(s.witness.close(), s.closePools()); err != nil && c.saved {
					t.Fatal(err)
				}
				if c.saved {
					if again := open(t, dir); again.Rollback() != nil || session(t, again, "ses_a").ID != "ses_a" {
						t.Errorf("the next start finds %v", again.Rollback())
					}
				}
			})
		}
	}
}
