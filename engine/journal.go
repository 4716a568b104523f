package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// journal holds the answers to a turn's effects: those of an earlier run of the daemon, to replay, and those of this
// run that are not written yet. A turn without tools never writes one.
type journal struct {
	begun   bool // the row with the turn's beginning is written
	replay  map[uint64][]persistence.Effect
	pending []noted
	lastEnv *turn.Environment // of the newest sync that was noted, and its effect
	lastID  uint64
}

// noted is an answer that is encoded once it must be written, which for most turns is never.
type noted struct {
	effect turn.Effect
	answer turn.Response
	sameAs uint64 // of a sync: the effect whose environment it is again
	row    persistence.Effect
}

// Rows of the journal that answer no effect; those of effects have ids from 1.
const (
	rowBegin    = 0
	rowProgress = 1
)

// beginning is what a turn goes on with after a restart, although the session may have moved on beside it.
type beginning struct {
	Config     protocol.Config    `json:"config"`
	Leaf       protocol.NodeID    `json:"leaf"`
	Branch     int64              `json:"branch"`
	Generation int64              `json:"generation"`
	Frame      protocol.FrameID   `json:"frame"`
	Inputs     []protocol.InputID `json:"inputs"`
	Prepared   *prepared          `json:"prepared,omitempty"` // what plugins made of it

	TurnOptions *protocol.TurnOptions `json:"turnOptions,omitempty"` // those of the session, with those of its input
}

// progress is how much of a turn the log tells of.
type progress struct {
	Calls int        `json:"calls"` // model calls
	Emits int        `json:"emits,omitempty"`
	Nodes []nodeNews `json:"nodes"`
}

type nodeNews struct {
	AtMs  int64 `json:"at"`
	Items []int `json:"items,omitempty"` // the parts that are items
}

func (p progress) retractions(session protocol.SessionID, id protocol.TurnID) []change.Event {
	var events []change.Event
	for i, n := range p.Nodes {
		for _, part := range n.Items {
			item := graph.ItemIDOf(protocol.DeriveNodeID(session, string(id), i), part)
			events = append(events, change.Event{Event: protocol.Event{Type: protocol.EventItemRetracted, TurnID: id, ItemID: item}})
		}
	}
	return events
}

// syncAgain is the body of a sync row whose environment is that of an earlier one.
type syncAgain struct {
	SameAs uint64 `json:"sameAs"`
}

// loadJournal reads what an earlier run of the daemon left of the turn.
func (r *run) loadJournal(ctx context.Context) error {
	rows, err := r.eng.store.Effects(ctx, r.id)
	if err != nil {
		return err
	}
	r.journal.replay = map[uint64][]persistence.Effect{}
	for _, row := range rows {
		switch {
		case row.ID > 0:
			r.journal.replay[row.ID] = append(r.journal.replay[row.ID], row)
		case row.Ordinal == rowBegin:
			r.journal.begun = true
			if err := json.Unmarshal(row.Body, &r.begin); err != nil {
				return fmt.Errorf("beginning of turn %s: %w", r.id, err)
			}
		}
	}
	r.logged, err = progressOf(rows)
	return err
}

func progressOf(rows []persistence.Effect) (progress, error) {
	var p progress
	for _, row := range rows {
		if row.ID == 0 && row.Ordinal == rowProgress {
			if err := json.Unmarshal(row.Body, &p); err != nil {
				return p, fmt.Errorf("progress of turn %s: %w", row.Turn, err)
			}
		}
	}
	return p, nil
}

// known finds the answer to an effect in the journal. A batch is known only when all of its calls are.
func (r *run) known(e turn.Effect) (answer turn.Response, known bool, err error) {
	rows := r.journal.replay[e.ID]
	if len(rows) == 0 {
		return answer, false, nil
	}
	if e.Kind == turn.EffectTools {
		return r.knownBatch(e)
	}
	if err := r.sameEffect(e, rows[0]); err != nil {
		return answer, false, err
	}
	if !rows[0].Finished { // a code cell that was started
		return answer, false, nil
	}
	body := rows[0].Body
	var again syncAgain
	if e.Kind == turn.EffectSync && json.Unmarshal(body, &again) == nil && again.SameAs != 0 && len(r.journal.replay[again.SameAs]) > 0 {
		body = r.journal.replay[again.SameAs][0].Body
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, false, fmt.Errorf("journal of effect %d: %w", e.ID, err)
	}
	if answer.Sync != nil {
		r.journal.lastEnv, r.journal.lastID = answer.Sync, e.ID
		if again.SameAs != 0 {
			r.journal.lastID = again.SameAs
		}
	}
	return answer, true, nil
}

func (r *run) knownBatch(e turn.Effect) (turn.Response, bool, error) {
	stages, err := r.stages(e)
	if err != nil {
		return turn.Response{}, false, err
	}
	for _, s := range stages {
		if !s.stored || s.overdue || s.wants() {
			return turn.Response{}, false, nil
		}
	}
	for _, s := range stages {
		r.owe(s)
		r.held = append(r.held, s.messages...)
	}
	return turn.Response{Tools: replies(stages)}, true, nil
}

// note keeps an answer until the next commit of the turn writes it.
func (r *run) note(e turn.Effect, answer turn.Response) {
	if e.Kind == turn.EffectTools {
		return // its rows are written call by call
	}
	n := noted{effect: e, answer: answer}
	j := &r.journal
	switch {
	case answer.Sync == nil:
	case j.lastEnv != nil && sameEnvironment(j.lastEnv, answer.Sync):
		n.sameAs = j.lastID
	default:
		j.lastEnv, j.lastID = answer.Sync, e.ID
	}
	j.pending = append(j.pending, n)
}

// sameEnvironment compares by identity where it can: a catalog that did not change gives the same slice.
func sameEnvironment(a, b *turn.Environment) bool {
	if a.System != b.System || len(a.Tools) != len(b.Tools) {
		return false
	}
	return len(a.Tools) == 0 || &a.Tools[0] == &b.Tools[0]
}

// unwritten are the rows that the next commit of the turn writes, which also says how much the log then tells.
func (r *run) unwritten(after progress) []persistence.Effect {
	var rows []persistence.Effect
	if !r.journal.begun {
		rows = append(rows, r.beginRow())
	}
	for i := range r.journal.pending {
		n := &r.journal.pending[i]
		if n.row.Body == nil {
			n.row = r.answerRow(n)
		}
		rows = append(rows, n.row)
	}
	return append(rows, persistence.Effect{
		Turn: r.id, Ordinal: rowProgress, Kind: "progress", Finished: true, Body: encode(after),
	})
}

func (r *run) answerRow(n *noted) persistence.Effect {
	row := persistence.Effect{
		Turn: r.id, ID: n.effect.ID, Kind: string(n.effect.Kind), Finished: true, Hash: r.prints.envelope(&n.effect),
	}
	if n.sameAs != 0 {
		row.Body = encode(syncAgain{n.sameAs})
	} else {
		row.Body = encode(n.answer)
	}
	return row
}

func (r *run) beginRow() persistence.Effect {
	return persistence.Effect{Turn: r.id, Ordinal: rowBegin, Kind: "begin", Finished: true, Body: encode(r.begin)}
}

// pin writes the beginning of the running turn with a commit that moves the session on beside it.
func (st *state) pin(c *change.Change) {
	r := st.current
	if r == nil || r.journal.begun {
		return
	}
	c.Effects = append(c.Effects, r.beginRow())
	c.Then(func() { r.journal.begun = true })
}
