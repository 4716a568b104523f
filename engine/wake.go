package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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

// woken is what became of a wake.
type woken struct {
	Input   protocol.QueuedInput // the one that it is, or was when it came before
	Refused protocol.WakeRefusal // why it was not taken; empty: it was
	Events  []logEvent           // of the commit
	Done    func()               // once the commit is stored
}

// wake puts a wake into a commit, after whatever else that holds of turns and inputs. A refusal is not an error: the commit goes
// on without it.
func (st *state) wake(c *persistence.Commit, w wake) (woken, error) {
	refused, known, err := st.refuseWake(c, w)
	if err != nil || refused != "" {
		return woken{Input: known, Refused: refused, Done: func() {}}, err
	}
	turns, inputs := st.after(c)
	in := w.input()
	var made []persistence.StoredTurn
	var events []logEvent
	if st.current != nil && w.Delivery == protocol.DeliverEarliest && slices.ContainsFunc(turns, st.current.isTurn) {
		in.TurnID, in.State, in.Boundary = st.current.id, protocol.InputPendingActive, protocol.BoundaryAfterWork
	} else if t := st.place(&in, turns, inputs); t != nil {
		made, turns = append(made, *t), append(turns, *t)
		c.Turns = append(c.Turns, t.Turn)
		events = append(events, acceptedEvent(t.ID, in))
	}
	c.Inputs = append(c.Inputs, in)
	events = append(events, queueChanged(waitingOf(append(inputs, in), turns)))
	return woken{Input: in, Events: events, Done: func() {
		st.turns, st.inputs = append(slices.Clip(st.turns), made...), append(slices.Clip(st.inputs), in)
		st.roused = true // not now: a commit may hold more wakes of the turn
	}}, nil
}

// rouse starts what was woken.
func (st *state) rouse() {
	if st.roused {
		st.roused = false
		st.kick()
	}
}

func (r *run) isTurn(t persistence.StoredTurn) bool { return t.ID == r.id }

// after are the turns that have not ended, and the inputs of turns to come, once a commit is stored.
func (st *state) after(c *persistence.Commit) (turns []persistence.StoredTurn, inputs []protocol.QueuedInput) {
	turns, inputs = slices.Clone(st.turns), slices.Clone(st.inputs)
	for _, t := range c.Turns {
		turns = slices.DeleteFunc(turns, func(old persistence.StoredTurn) bool { return old.ID == t.ID && t.Report != nil })
		known := slices.ContainsFunc(turns, func(old persistence.StoredTurn) bool { return old.ID == t.ID })
		if t.Report == nil && !known {
			turns = append(turns, persistence.StoredTurn{Session: st.id, Turn: t})
		}
	}
	for _, in := range c.Inputs {
		if i := slices.IndexFunc(inputs, func(old protocol.QueuedInput) bool { return old.ID == in.ID }); i >= 0 {
			inputs[i] = in
			continue
		}
		inputs = append(inputs, in)
	}
	return turns, inputs
}

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
func (st *state) refuseWake(c *persistence.Commit, w wake) (why protocol.WakeRefusal, known protocol.QueuedInput, err error) {
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
