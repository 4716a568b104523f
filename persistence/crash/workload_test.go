package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// The environment of the copy of this binary that runs the workload.
const (
	dirEnv        = "LASHD_CRASH_DIR"
	durabilityEnv = "LASHD_CRASH_DURABILITY"
	roundsEnv     = "LASHD_CRASH_ROUNDS" // how often the store is opened, written to and closed
	commitsEnv    = "LASHD_CRASH_COMMITS"
)

// exitPoisoned is how a daemon must end when it cannot know what is on disk.
const exitPoisoned = 74

const writers = 4

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirEnv); dir != "" {
		if os.Getenv(keysEnv) != "" {
			os.Exit(storeKeys(dir))
		}
		os.Exit(workload(dir))
	}
	os.Exit(m.Run())
}

func workload(dir string) int {
	rounds, _ := strconv.Atoi(os.Getenv(roundsEnv)) // absent: none
	for round := range rounds {
		err := writeRound(dir, round)
		if errors.Is(err, persistence.ErrPoisoned) {
			return exitPoisoned
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func config(dir string) persistence.Config {
	return persistence.Config{Dir: dir, Log: slog.New(slog.DiscardHandler), Durability: os.Getenv(durabilityEnv)}
}

func writeRound(dir string, round int) error {
	s, err := persistence.Open(context.Background(), config(dir))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error { return write(s, sessionID(w), round) })
	}
	err = group.Wait()
	cancel()
	if ended := <-ran; err == nil {
		err = ended
	}
	if errors.Is(err, persistence.ErrPoisoned) {
		return err // not closed: that could lose what the log still holds
	}
	return errors.Join(err, s.Close())
}

func sessionID(writer int) protocol.SessionID { return protocol.SessionID(fmt.Sprint("ses_", writer)) }

// write commits turn-like changes to a session, and prints a line after each.
func write(s *persistence.Store, id protocol.SessionID, round int) error {
	ctx := context.Background()
	commits, _ := strconv.Atoi(os.Getenv(commitsEnv))
	row, err := s.Session(ctx, id)
	if errors.Is(err, persistence.ErrNotFound) {
		_, err = s.Commit(ctx, &persistence.Commit{Session: id, Create: &persistence.NewSession{Cwd: "/w"}})
	}
	if err != nil {
		return err
	}
	for i := range commits {
		seq := int(row.Seq) + i + 1
		c := change(id, seq)
		if i == 0 && round == 0 && id == sessionID(0) {
			blob, err := s.PrepareBlob(largeBlob)
			if err != nil {
				return err
			}
			c.Blobs = []persistence.Blob{blob}
		}
		if _, err := s.Commit(ctx, c); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(os.Stdout, "ack %s %d\n", id, seq); err != nil { // one write: its place in the trace counts
			return err
		}
	}
	return nil
}

var largeBlob = bytes.Repeat([]byte("blob"), 1<<18+1)

// change returns the content of the commit with an event of this number; it depends on the number only.
func change(id protocol.SessionID, seq int) *persistence.Commit {
	return &persistence.Commit{
		Session:   id,
		AtMs:      int64(seq),
		Nodes:     []protocol.Node{{ID: protocol.DeriveNodeID(id, "test", seq), Message: &protocol.Message{Role: protocol.RoleUser}}},
		Events:    []persistence.Event{{Type: protocol.EventItemCompleted, Body: body(id, seq)}},
		Component: []persistence.Component{{Name: "state", Body: fmt.Appendf(nil, "%01500d", seq)}},
	}
}

func body(id protocol.SessionID, seq int) []byte {
	return fmt.Appendf(nil, `{"of":%q,"n":%0200d}`, id, seq)
}
