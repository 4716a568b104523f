package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// acked is the newest acknowledged event of each session.
type acked map[protocol.SessionID]int

// note reads a line of the workload.
func (a acked) note(line string) {
	var id protocol.SessionID
	var seq int
	if _, err := fmt.Sscanf(line, "ack %s %d", &id, &seq); err == nil {
		a[id] = seq
	}
}

// verdict is the state of a store after a crash.
type verdict struct {
	lost    []string // acknowledged, but gone
	broken  []string // violations of promises that hold in any case
	noticed bool     // the store itself saw that commits were lost
}

// inspect opens a store after a crash, reads all of it and closes it.
func inspect(dir string, want acked) verdict {
	var v verdict
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := persistence.Open(ctx, config(dir))
	if err != nil {
		v.broken = append(v.broken, err.Error())
		return v
	}
	defer s.Close()
	v.noticed = s.Rollback() != nil
	if err := s.Healthy(); err != nil {
		v.broken = append(v.broken, err.Error())
	}
	report, err := s.Verify(ctx, func(int, int) {})
	if err != nil {
		v.broken = append(v.broken, err.Error())
	}
	v.broken = append(v.broken, report.Problems...)
	for id, seq := range want {
		if err := compare(ctx, s, id, seq); errors.Is(err, errLost) {
			v.lost = append(v.lost, err.Error())
		} else if err != nil {
			v.broken = append(v.broken, err.Error())
		}
	}
	return v
}

var errLost = errors.New("lost")

// compare checks that a session has all acknowledged events, and only events that were sent.
func compare(ctx context.Context, s *persistence.Store, id protocol.SessionID, seq int) error {
	row, err := s.Session(ctx, id)
	if errors.Is(err, persistence.ErrNotFound) || int(row.Seq) < seq {
		return fmt.Errorf("%w: session %s has %d events of %d", errLost, id, row.Seq, seq)
	}
	if err != nil {
		return err
	}
	for at := protocol.Seq(0); at < row.Seq; {
		page, err := s.Events(ctx, row.Key, at, 100)
		if err != nil || len(page) == 0 {
			return fmt.Errorf("session %s after event %d: %d events, %w", id, at, len(page), err)
		}
		for _, e := range page {
			if at++; e.Seq != at || !bytes.Equal(e.Body, body(id, int(at))) {
				return fmt.Errorf("session %s: event %d is not what was sent", id, at)
			}
		}
	}
	state, err := s.Components(ctx, row.Key, "")
	if err == nil && row.Seq > 0 && string(state["state"]) != fmt.Sprintf("%01500d", row.Seq) {
		err = fmt.Errorf("session %s: its state is not that of event %d", id, row.Seq)
	}
	if err == nil && row.Head.Generation != max(int64(row.Seq)-1, 0) {
		err = fmt.Errorf("session %s: generation %d at event %d", id, row.Head.Generation, row.Seq)
	}
	return err
}

// long reports whether to run the whole test.
func long() bool { return os.Getenv("LASHD_LONG") != "" }

// seed returns the seed of a failure to repeat, or a new one.
func seed(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("LASHD_SEED"), 10, 64)
	if err != nil {
		n = rand.Uint64()
	}
	t.Logf("LASHD_SEED=%d", n)
	return n
}

func report(t *testing.T, what string, v verdict) {
	t.Helper()
	if len(v.lost)+len(v.broken) > 0 {
		t.Errorf("%s: lost %s; broken %s", what, strings.Join(v.lost, ", "), strings.Join(v.broken, ", "))
	}
}

func lines(text []byte) iter.Seq[string] { return strings.Lines(string(text)) }
