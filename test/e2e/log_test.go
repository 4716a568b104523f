package e2e

import (
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// replay returns the log of a session from its beginning, as a new client gets it.
func (h *home) replay(id protocol.SessionID) []told {
	h.t.Helper()
	p := h.dial("")
	defer p.conn.Close()
	newest := p.attach(id, 0).Seq
	p.until("the replay", func(all []told) bool { return newest == 0 || len(all) > 0 && all[len(all)-1].Seq >= newest })
	return p.log(id)
}

// gapless reports sequence numbers that are not first, first+1 and so on.
func gapless(list []told, first protocol.Seq) error {
	for i, e := range list {
		if want := first + protocol.Seq(i); e.Seq != want {
			return fmt.Errorf("event %d is %s with seq %d, want %d", i, e.Type, e.Seq, want)
		}
	}
	return nil
}

// repeats reports events in seen that differ from all, a log from its beginning, in any byte.
func repeats(all, seen []told) error {
	for _, e := range seen {
		switch {
		case int(e.Seq) > len(all):
			return fmt.Errorf("seq %d was received, but the log ends at %d", e.Seq, len(all))
		case all[e.Seq-1].raw != e.raw:
			return fmt.Errorf("seq %d was %s, and is now %s", e.Seq, e.raw, all[e.Seq-1].raw)
		}
	}
	return nil
}

// lifeOf reports a turn that is not accepted once and then completed once.
func lifeOf(all []told, id protocol.TurnID) error {
	var life []string
	for _, e := range all {
		if e.TurnID == id && (e.Type == protocol.EventTurnAccepted || e.Type == protocol.EventTurnCompleted) {
			life = append(life, string(e.Type))
		}
	}
	if got := strings.Join(life, " "); got != "turn/accepted turn/completed" {
		return fmt.Errorf("turn %s has the events %q", id, got)
	}
	return nil
}
