//go:build unix

package persistence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// growEnv names the data directory that a copy of this test binary writes to until it is killed.
const growEnv = "LASHD_TEST_GROW"

func init() { children[growEnv] = growForEver }

func growForEver() {
	s, err := Open(context.Background(), quiet(os.Getenv(growEnv)))
	if err != nil {
		panic(err)
	}
	go s.Run(context.Background())
	for i := 0; err == nil; i++ {
		id := protocol.SessionID(fmt.Sprint("ses_", i))
		c := rootCommit(id)
		for n := range 64 {
			m := message(fmt.Sprintf("nod_%d_%d", i, n))
			m.Message.Parts = []protocol.Part{{Kind: protocol.PartText, Text: string(fmt.Appendf(nil, "%032000d", n))}}
			c.Nodes = append(c.Nodes, m)
			c.Events = append(c.Events, event(n))
		}
		_, err = s.Commit(context.Background(), c)
	}
	panic(err)
}

func TestLargeStart(t *testing.T) {
	t.Run("outside/16 damage found in the background stops writes, not reads", func(t *testing.T) {
		dir := oldDatabase(t)
		s, stop := start(t, quiet(dir))
		for i := range 300 {
			commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message(fmt.Sprint("nod_", i))}})
		}
		stop()
		tamper(t, dir, "PRAGMA ignore_check_constraints = 1; INSERT INTO turns SELECT 9, 'trn_x', 1, 'odd', '', NULL, NULL, 0, 0, 0")
		reseal(t, dir) // else it would be a copy, which is checked before it is written to
		s = must(Open(t.Context(), quiet(dir)))
		s.unchecked, s.uncheckedLarge = false, true
		turned := s.Changed()
		stop = run(t, s)
		defer stop()
		if s.Healthy() == nil {
			<-turned
		}
		refuse(t, s, rootCommit("ses_b"), ErrCorrupt)
		if got := session(t, s, "ses_a"); got.Seq != 1 {
			t.Errorf("session %+v", got)
		}
	})
	t.Run("outside/16 a store of 1 GiB answers within 2 s after kill -9", func(t *testing.T) {
		large, most := int64(slowFile+1), time.Minute // large enough for the same way, and no measurement
		if os.Getenv("LASHD_LONG") != "" {
			large, most = 1<<30, 2*time.Second
		}
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), growEnv+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for begin := time.Now(); fileSize(filepath.Join(dir, fileName)) < large; time.Sleep(10 * time.Millisecond) {
			if time.Since(begin) > 20*time.Minute {
				t.Fatal("it does not grow")
			}
		}
		if err := errors.Join(cmd.Process.Kill(), ignored(cmd.Wait())); err != nil {
			t.Fatal(err)
		}
		wal := fileSize(filepath.Join(dir, fileName) + "-wal")
		began := time.Now()
		s := must(Open(t.Context(), quiet(dir)))
		stop := run(t, s)
		defer stop()
		if !s.uncheckedLarge {
			t.Error("all of its structure was checked before the first answer")
		}
		if _, err := s.Session(t.Context(), "ses_0"); err != nil {
			t.Fatal(err)
		}
		read := time.Since(began)
		commit(t, s, rootCommit("ses_after"))
		wrote := time.Since(began)
		t.Logf("a database of %d MiB with a log of %d KiB: first read after %v, first commit after %v", large>>20, wal>>10, read, wrote)
		if wrote > most {
			t.Errorf("the first commit took %v", wrote)
		}
	})
}

// ignored is the end by a signal.
func ignored(error) error { return nil }
