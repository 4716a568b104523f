package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// wake is work that something other than a person queues for a session.
type wake struct {
	Source   string // the session takes it once
	Merge    string // wakes of one merge key, delivery and ceiling that stand together in the queue become one turn; empty: never
	Delivery protocol.Delivery
	Cause    protocol.TurnCause
	Expires  int64  // ms since 1970; 0: never
	Stream   string // its wakes come in the order of Ordinal, from 1; empty: in any
	Ordinal  int64
	Ceiling  *protocol.Ceiling // of who causes it, beside that of the session; nil: none
}

// wake puts a wake into a change, after whatever else that says of turns and inputs. It gives the input that the wake is, or was when
// it came before, and why it was not taken; empty: it was. A refusal is not an error: the change goes on without it.
func (st *state) wake(c *change.Change, w wake) (in protocol.QueuedInput, refused protocol.WakeRefusal, err error) {
	refused, known, err := st.refuseWake(c, w)
	if err != nil || refused != "" {
		return known, refused, err
	}
	q := st.queueIn(c)
	in = w.input()
	if st.current != nil && w.Delivery == protocol.DeliverEarliest && slices.ContainsFunc(q.turns, st.current.isTurn) {
		in.TurnID, in.State, in.Boundary = st.current.id, protocol.InputPendingActive, protocol.BoundaryAfterWork
	} else if t := q.place(&in); t != nil {
		q.addTurn(c, *t)
		c.Tell(acceptedEvent(t.ID, in))
	}
	q.addInput(c, in)
	q.tellWaiting(c)
	q.woken = true // not at once: a change may hold more wakes of the turn
	return in, "", nil
}

// rouse starts what was woken.
func (st *state) rouse() {
	if st.wakePending {
		st.wakePending = false
		st.kick()
	}
}

func (r *run) isTurn(t persistence.StoredTurn) bool { return t.ID == r.id }

// input is a wake as it stands in the queue.
func (w wake) input() protocol.QueuedInput {
	told := w.told()
	w.Cause.Text = ""
	return protocol.QueuedInput{
		ID: protocol.NewInputID(), State: protocol.InputQueued, Source: w.Source, AtMs: now(), Ceiling: w.Ceiling,
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: told}},
		Wake: &protocol.QueuedWake{
			Cause: w.Cause, Delivery: w.Delivery, Merge: w.Merge, ExpiresAtMs: w.Expires, Stream: w.Stream, Ordinal: w.Ordinal,
		},
	}
}

// told is what the model reads of a wake.
func (w wake) told() string {
	who := strings.TrimSpace(w.Cause.Type + " " + w.Cause.Origin)
	return strings.ToValidUTF8(fmt.Sprintf("[%s] %s", who, w.Cause.Text), "\uFFFD")
}

// refuseWake tells why a wake is not taken, and which input it is if it came before.
func (st *state) refuseWake(c *change.Change, w wake) (why protocol.WakeRefusal, known protocol.QueuedInput, err error) {
	beside := map[string]protocol.QueuedInput{}
	var newest int64
	for _, in := range c.Inputs {
		beside[in.Source] = in
		if in.Wake != nil && in.Wake.Stream == w.Stream {
			newest = max(newest, in.Wake.Ordinal)
		}
	}
	same, err := st.sameInput(st.ctx, beside, w.Source)
	switch {
	case err != nil:
		return "", known, err
	case same != nil:
		return protocol.WakeDuplicate, *same, nil
	case w.Expires > 0 && w.Expires <= now():
		return protocol.WakeExpired, known, nil
	case len(w.told()) > st.roomForWakes():
		return protocol.WakeTooLarge, known, nil
	case w.Stream == "":
		return "", known, nil
	}
	stored, err := st.eng.store.NewestOrdinal(st.ctx, st.key, w.Stream)
	if err == nil && w.Ordinal <= max(newest, stored) {
		return protocol.WakeRewound, known, nil
	}
	return "", known, err
}

// roomForWakes is how many bytes the model can be told at once.
func (st *state) roomForWakes() int {
	window := cmp.Or(st.row.Config.Model.ContextWindow, protocol.MaxInput)
	return int(min(protocol.MaxInput, window*bytesPerToken))
}
