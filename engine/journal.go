package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"lashd/engine/change"
	"lashd/engine/feed"
	"lashd/engine/graph"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// journal is what a turn has come to, and how much of it is durable: the answers that its machine was given, the nodes that its messages
// become, and what the log tells of them. A turn without tools writes no rows before its end. The goroutine of the turn changes it, and
// the actor while that goroutine waits; mu guards what others may read meanwhile.
type journal struct {
	session protocol.SessionID
	turn    protocol.TurnID
	begin   beginning
	machine *turn.Machine // nil until beforeTurn hooks have run, if plugins have any
	prints  fingerprints
	size    turnSize

	begun   bool                            // the row with the turn's beginning is stored
	replay  map[uint64][]persistence.Effect // rows that an earlier run of the daemon stored, by effect id
	pending []pendingAnswer                 // answers that the next commit writes
	lastEnv *turn.Environment               // environment of the newest sync answer; lastID is the effect that has its full row
	lastID  uint64

	logged   progress              // written by the actor only
	emits    []protocol.PluginNode // events of the driver for observers, in order
	streamed []*feed.Item          // items of model output that clients see and the log does not have yet

	mu    sync.Mutex
	nodes []protocol.Node // one for each message of the machine, and for messages that hooks append
}

// pendingAnswer is an answer that is encoded once it must be written, which for most turns is never.
type pendingAnswer struct {
	effect turn.Effect
	answer turn.Response
	sameAs uint64 // for a sync with an unchanged environment: the effect whose row has it; else 0
	row    persistence.Effect
}

// Ordinals of the rows with effect id 0, which answer no effect. Effects have ids from 1.
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
	Prepared   *prepared          `json:"prepared,omitempty"` // result of the beforeTurn hooks; nil: none ran

	TurnOptions *protocol.TurnOptions `json:"turnOptions,omitempty"` // of the frame, merged with those of the inputs
}

// progress is how much of a turn the log tells of.
type progress struct {
	Calls int            `json:"calls"`           // model calls that the log records
	Emits int            `json:"emits,omitempty"` // events of the driver in the log
	Nodes []nodeProgress `json:"nodes"`
}

type nodeProgress struct {
	AtMs  int64 `json:"at"`
	Items []int `json:"items,omitempty"` // indexes of the parts that have item events
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

// load reads what an earlier run of the daemon left of the turn.
func (j *journal) load(ctx context.Context, store *persistence.Store) error {
	rows, err := store.Effects(ctx, j.turn)
	if err != nil {
		return err
	}
	j.replay = map[uint64][]persistence.Effect{}
	for _, row := range rows {
		switch {
		case row.ID > 0:
			j.replay[row.ID] = append(j.replay[row.ID], row)
		case row.Ordinal == rowBegin:
			j.begun = true
			if err := json.Unmarshal(row.Body, &j.begin); err != nil {
				return fmt.Errorf("beginning of turn %s: %w", j.turn, err)
			}
		}
	}
	j.logged, err = progressOf(rows)
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

// known finds the answer to an effect that is no batch of calls.
func (j *journal) known(e turn.Effect) (answer turn.Response, known bool, err error) {
	rows := j.replay[e.ID]
	if len(rows) == 0 {
		return answer, false, nil
	}
	if err := j.sameEffect(e, rows[0]); err != nil {
		return answer, false, err
	}
	if !rows[0].Finished { // a code cell that started and has no result
		return answer, false, nil
	}
	body := rows[0].Body
	var again syncAgain
	if e.Kind == turn.EffectSync && json.Unmarshal(body, &again) == nil && again.SameAs != 0 && len(j.replay[again.SameAs]) > 0 {
		body = j.replay[again.SameAs][0].Body
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, false, fmt.Errorf("journal of effect %d: %w", e.ID, err)
	}
	if answer.Sync != nil {
		j.lastEnv, j.lastID = answer.Sync, e.ID
		if again.SameAs != 0 {
			j.lastID = again.SameAs
		}
	}
	return answer, true, nil
}

// note keeps an answer until the next commit of the turn writes it.
func (j *journal) note(e turn.Effect, answer turn.Response) {
	if e.Kind == turn.EffectTools {
		return // its rows are written call by call
	}
	n := pendingAnswer{effect: e, answer: answer}
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
func (j *journal) unwritten(after progress) []persistence.Effect {
	var rows []persistence.Effect
	if !j.begun {
		rows = append(rows, j.beginRow())
	}
	for i := range j.pending {
		n := &j.pending[i]
		if n.row.Body == nil {
			n.row = j.answerRow(n)
		}
		rows = append(rows, n.row)
	}
	return append(rows, persistence.Effect{
		Turn: j.turn, Ordinal: rowProgress, Kind: "progress", Finished: true, Body: encode(after),
	})
}

func (j *journal) answerRow(n *pendingAnswer) persistence.Effect {
	row := persistence.Effect{
		Turn: j.turn, ID: n.effect.ID, Kind: string(n.effect.Kind), Finished: true, Hash: j.prints.envelope(&n.effect),
	}
	if n.sameAs != 0 {
		row.Body = encode(syncAgain{n.sameAs})
	} else {
		row.Body = encode(n.answer)
	}
	return row
}

func (j *journal) beginRow() persistence.Effect {
	return persistence.Effect{Turn: j.turn, Ordinal: rowBegin, Kind: "begin", Finished: true, Body: encode(j.begin)}
}

// pin writes the beginning of a turn with a commit that moves the session on beside it. It does nothing for a nil run, and for a turn that
// has no plugins yet.
func (r *run) pin(c *change.Change) {
	if r == nil || r.hooks.plugins == nil || r.journal.begun {
		return
	}
	j := &r.journal
	c.Effects = append(c.Effects, j.beginRow())
	c.Then(func() { j.begun = true })
}

// addTo adds to a change of the turn what the next commit of it writes anyway, and the events of what the log does not tell yet.
func (j *journal) addTo(c *change.Change) {
	result := j.result()
	after, events := j.newEvents(result)
	c.Usage, c.Effects = j.ledger(result, j.logged.Calls), j.unwritten(after)
	c.Shown = j.streamed
	c.Tell(events...)
	c.Then(func() {
		j.begun, j.pending = true, nil
		j.logged, j.streamed = after, nil
	})
}
