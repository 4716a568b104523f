package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"lashd/engine/audit"
	"lashd/engine/change"
	"lashd/engine/effectprint"
	"lashd/engine/feed"
	"lashd/engine/graph"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// journal holds the progress of one turn and knows how much of it is durable: the answers that its machine
// received, the nodes that its messages will become, and the events that the log already contains. After a crash,
// load and replay bring a new machine to the same point, so that no finished effect runs twice. A turn without
// tools writes no journal rows before its end. The goroutine of the turn owns the journal. The actor changes it
// only inside a function for which that goroutine waits; mu guards the parts that others read at any time.
type journal struct {
	session protocol.SessionID
	turn    protocol.TurnID
	begin   beginning
	machine *turn.Machine // nil until beforeTurn hooks have run, if plugins have any
	prints  effectprint.Printer
	size    turnSize

	begun   bool                            // the row with the turn's beginning is stored
	replay  map[uint64][]persistence.Effect // rows that an earlier run of the daemon stored, by effect id
	pending []pendingAnswer                 // answers that the next commit writes
	lastEnv *turn.Environment               // environment of the newest sync answer; lastID is the effect that has its full row
	lastID  uint64

	logged   progress              // written by the actor only
	audits   audit.Queue           // records of refused calls, for the commit with their results
	emits    []protocol.PluginNode // events of the driver for observers, in order
	streamed []*feed.Item          // items of model output that clients see and the log does not have yet

	mu    sync.Mutex
	nodes []protocol.Node // one for each message of the machine, and for messages that hooks append
}

// pendingAnswer is an answer that no commit has written yet. It is encoded only when a commit needs it: most turns
// end first, and then their history makes the answers redundant.
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

// beginning is the state of the session that a turn starts from. It is stored with the first journal row, because
// the session may change while the turn runs: a resumed turn uses these settings, history and inputs, not the
// current ones.
type beginning struct {
	Config     protocol.Config    `json:"config"`
	Leaf       protocol.NodeID    `json:"leaf"`
	Branch     int64              `json:"branch"`
	Generation int64              `json:"generation"`
	Frame      protocol.FrameID   `json:"frame"`
	Inputs     []protocol.InputID `json:"inputs"`
	Prepared   *prepared          `json:"prepared,omitempty"` // result of the beforeTurn hooks; nil: none ran

	TurnOptions *protocol.TurnOptions `json:"turnOptions,omitempty"` // of the frame, merged with those of the inputs
	Schema      json.RawMessage       `json:"schema,omitempty"`      // of the turn's value; nil: the turn ends with text
}

// progress is how much of a turn the session's log already contains. Its row is replaced with each commit of the
// turn, and tells a resumed turn which events not to repeat and which items to retract.
type progress struct {
	Calls int            `json:"calls"`           // model calls that the log records
	Emits int            `json:"emits,omitempty"` // events of the driver in the log
	Nodes []nodeProgress `json:"nodes"`
}

// nodeProgress is what the log has of one node. AtMs is the node's time in Unix milliseconds, which a resumed turn
// keeps.
type nodeProgress struct {
	AtMs  int64 `json:"at"`
	Items []int `json:"items,omitempty"` // indexes of the parts that have item events
	// Undecided are the indexes of the calls whose items started without a decision.
	Undecided []int `json:"undecided,omitempty"`
}

// retractions returns the events that withdraw all items of the turn from clients, for a turn whose messages do
// not become history.
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

// syncAgain is the body of a sync row whose environment equals that of an earlier row. Prompts and tool lists are
// large and rarely change within a turn.
type syncAgain struct {
	SameAs uint64                `json:"sameAs"`
	Code   *turn.CodeEnvironment `json:"code,omitempty"` // it is not compared: the globals change with most cells
}

// load reads the rows that an earlier run of the daemon stored. It runs before the machine exists, and replaces
// begin with the stored one.
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

// progressOf returns the progress in the rows of a turn; the zero value if there is none.
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

// known returns the stored answer to an effect other than a batch of tool calls. A row that does not fit the
// effect is a *JournalError: the driver took another path than before, and the turn must not go on from here.
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
			j.lastID, answer.Sync.Code = again.SameAs, again.Code
		}
	}
	return answer, true, nil
}

// note queues an answer for the next commit of the turn. Batches of calls are not queued: their rows are written
// call by call.
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

// sameEnvironment reports whether two environments have the same prompt and tools. It compares tool lists by
// identity, because an unchanged catalog returns the same slice; a false negative only costs a longer row.
func sameEnvironment(a, b *turn.Environment) bool {
	if a.System != b.System || len(a.Tools) != len(b.Tools) {
		return false
	}
	return len(a.Tools) == 0 || &a.Tools[0] == &b.Tools[0]
}

// unwritten returns the rows that the next commit of the turn must write: the beginning, if it is not stored, the
// pending answers, and the progress after that commit. It caches encoded rows, as a failed commit is tried again.
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

// answerRow encodes a pending answer, with a hash of its effect that known checks when the turn is resumed.
func (j *journal) answerRow(n *pendingAnswer) persistence.Effect {
	row := persistence.Effect{
		Turn: j.turn, ID: n.effect.ID, Kind: string(n.effect.Kind), Finished: true, Hash: j.prints.Envelope(&n.effect),
	}
	if n.sameAs != 0 {
		row.Body = encode(syncAgain{n.sameAs, n.answer.Sync.Code})
	} else {
		row.Body = encode(n.answer)
	}
	return row
}

func (j *journal) beginRow() persistence.Effect {
	return persistence.Effect{Turn: j.turn, Ordinal: rowBegin, Kind: "begin", Finished: true, Body: encode(j.begin)}
}

// pin adds the beginning of a turn to a commit that changes the session while the turn runs, such as one of its
// history or settings. Without it, a resumed turn would start from the changed session. It runs on the actor, and
// does nothing for a nil run and for a turn without plugins, which has read nothing of the session yet.
func (r *run) pin(c *change.Change) {
	if r == nil || r.hooks.plugins == nil || r.journal.begun {
		return
	}
	j := &r.journal
	c.Effects = append(c.Effects, j.beginRow())
	c.Then(func() { j.begun = true })
}

// addTo adds the unwritten rows, usage and events of the turn to a change. The journal advances only when the
// commit succeeds, so a failed change can be built again.
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
