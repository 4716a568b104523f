package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// fold is the state of a session for a client that follows docs/protocol.md to the letter. Violations
// of its rules are in broken.
type fold struct {
	id        protocol.SessionID
	seq       protocol.Seq
	items     []protocol.Item // durable ones, in order
	open      []protocol.Item // unfinished ones, with their text so far
	decisions []protocol.Decision
	queue     []protocol.QueuedInput
	tasks     []protocol.Task // tasks that have not ended
	turns     map[protocol.TurnID]int
	bare      map[protocol.ItemID]protocol.Seq // numbers of durable events that named an item which did not exist
	inputs    []protocol.QueuedInput           // inputs of turns that have not ended, in order of arrival
	due       *protocol.SessionAttachResult    // expected state at the end of a replay
	partial   bool                             // there are older items
	rewound   func(protocol.Seq) protocol.TurnID
	stale     bool // the session must be read again
	broken    []error
}

// The states of a turn.
const (
	turnAccepted = iota + 1
	turnOver
)

func newFold(id protocol.SessionID) *fold {
	return &fold{id: id, turns: map[protocol.TurnID]int{}, bare: map[protocol.ItemID]protocol.Seq{}}
}

func (f *fold) breaks(format string, args ...any) {
	f.broken = append(f.broken, fmt.Errorf("%s at seq %d: %w", f.id, f.seq, fmt.Errorf(format, args...)))
}

// attached applies the answer of session/attach. Only durable items survive it.
func (f *fold) attached(r *protocol.SessionAttachResult, snapshot bool) {
	f.open = slices.Clone(r.OpenItems)
	if !snapshot && r.Gap == nil {
		f.due = r
		f.arrive()
		return
	}
	f.items, f.partial, f.seq, f.stale, f.due = slices.Clone(r.Items), r.NextCursor != "", r.Seq, false, nil
	f.turns, f.bare = map[protocol.TurnID]int{}, map[protocol.ItemID]protocol.Seq{}
	f.decisions, f.queue, f.tasks = slices.Clone(r.Decisions), r.Queue, slices.Clone(r.Tasks)
	f.inputs = slices.Concat(r.Entered, r.Queue)
	if r.TurnID != "" {
		f.turns[r.TurnID] = turnAccepted
	}
}

// arrive compares the state at the end of a replay with the answer of session/attach.
func (f *fold) arrive() {
	if f.due == nil || f.seq < f.due.Seq || f.stale {
		return
	}
	f.same("the queue", f.queue, f.due.Queue)
	f.same("the inputs that entered", f.entered(), idsOf(f.due.Entered))
	f.same("the tasks", sortedTasks(f.tasks), sortedTasks(f.due.Tasks))
	f.same("the decisions", f.own(f.decisions), f.own(f.due.Decisions))
	if f.turns[f.due.TurnID] == turnOver {
		f.breaks("the turn %s is said to run, and is over", f.due.TurnID)
	}
	f.decisions, f.due = slices.Clone(f.due.Decisions), nil
}

// same compares two values in their wire form.
func (f *fold) same(what string, got, want any) {
	if a, b := wire(got), wire(want); a != b {
		f.breaks("%s: folded are\n%s\nread\n%s", what, around(a, b), around(b, a))
	}
}

// around returns the part of a text at which it starts to differ from another.
func around(a, b string) string {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return a[max(0, at-120):min(len(a), at+200)]
}

// wire returns a value as JSON with sorted members, because the event library reorders them.
func wire(v any) string {
	var plain any
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &plain)
	}
	if err == nil {
		raw, err = json.Marshal(plain)
	}
	if err != nil {
		panic(err) // cannot fail for types of the protocol
	}
	if plain == nil {
		return "[]"
	}
	return string(raw)
}

func (f *fold) own(all []protocol.Decision) []protocol.Decision {
	all = slices.DeleteFunc(slices.Clone(all), func(d protocol.Decision) bool { return d.SessionID != f.id })
	for i := range all {
		all[i].RemainingMs = 0 // depends on when it is read
	}
	return all
}

// sortedTasks returns the tasks without their position among all task changes, which events do not
// have.
func sortedTasks(all []protocol.Task) []protocol.Task {
	all = slices.Clone(all)
	for i := range all {
		all[i].Change = 0
	}
	return slices.SortedFunc(slices.Values(all), func(a, b protocol.Task) int { return strings.Compare(string(a.ID), string(b.ID)) })
}

// apply applies an event.
func (f *fold) apply(e protocol.Event) {
	if e.Seq != 0 {
		if e.Seq != f.seq+1 {
			f.breaks("seq %d comes", e.Seq)
		}
		f.seq = e.Seq
		f.turn(e)
	}
	switch e.Type {
	case protocol.EventItemStarted, protocol.EventItemDelta, protocol.EventItemCompleted, protocol.EventItemRetracted:
		f.item(e)
	case protocol.EventDecisionOpened:
		f.decisions = append(f.without(e.Decision.ID), *e.Decision)
	case protocol.EventDecisionResolved:
		f.decisions = f.without(e.Decision.ID)
	case protocol.EventQueueChanged:
		f.queue = e.Queue
		f.take(e.Queue)
	case protocol.EventTaskStarted, protocol.EventTaskChanged, protocol.EventTaskCompleted:
		f.tasks = slices.DeleteFunc(f.tasks, func(t protocol.Task) bool { return t.ID == e.Task.ID })
		if !e.Task.State.Final() {
			f.tasks = append(f.tasks, *e.Task)
		}
	case protocol.EventSessionRewound:
		f.rewind(e.Seq)
	}
	f.arrive()
}

func (f *fold) without(id protocol.DecisionID) []protocol.Decision {
	return slices.DeleteFunc(f.decisions, func(d protocol.Decision) bool { return d.ID == id })
}

// turn checks that a turn is accepted once, ends once, and has no events afterwards.
func (f *fold) turn(e protocol.Event) {
	switch {
	case e.TurnID == "":
		return
	case f.turns[e.TurnID] == turnOver:
		f.breaks("of the turn %s, which is over, comes %s", e.TurnID, e.Type)
	case e.Type == protocol.EventTurnAccepted && f.turns[e.TurnID] != 0:
		f.breaks("the turn %s is accepted again", e.TurnID)
	case e.Type == protocol.EventTurnAccepted:
		f.turns[e.TurnID] = turnAccepted
		for _, id := range e.InputIDs {
			f.take([]protocol.QueuedInput{{ID: id, TurnID: e.TurnID}})
		}
	case e.Type == protocol.EventTurnCompleted:
		f.turns[e.TurnID] = turnOver
		f.inputs = slices.DeleteFunc(f.inputs, func(in protocol.QueuedInput) bool { return in.TurnID == e.TurnID })
		if i := slices.IndexFunc(f.open, func(o protocol.Item) bool { return o.TurnID == e.TurnID }); i >= 0 {
			f.breaks("of the turn %s, which is over, the item %s is open", e.TurnID, f.open[i].ID)
		}
	}
}

// take records inputs and the turns that they wait for.
func (f *fold) take(inputs []protocol.QueuedInput) {
	for _, in := range inputs {
		if i := slices.IndexFunc(f.inputs, func(old protocol.QueuedInput) bool { return old.ID == in.ID }); i >= 0 {
			f.inputs[i] = in
		} else {
			f.inputs = append(f.inputs, in)
		}
	}
}

// entered returns the inputs that have left the queue and have no item yet.
func (f *fold) entered() []protocol.InputID {
	return slices.DeleteFunc(idsOf(f.inputs), func(id protocol.InputID) bool {
		return slices.Contains(idsOf(f.queue), id) || slices.ContainsFunc(f.items, func(i protocol.Item) bool { return i.Origin != nil && i.Origin.InputID == id })
	})
}

func idsOf(inputs []protocol.QueuedInput) (ids []protocol.InputID) {
	for _, in := range inputs {
		ids = append(ids, in.ID)
	}
	return ids
}

// rewind removes the items that a rewind removed, or marks the session to be read again.
func (f *fold) rewind(at protocol.Seq) {
	if f.rewound == nil {
		f.stale = true
		return
	}
	turn := f.rewound(at)
	if i := slices.IndexFunc(f.items, func(i protocol.Item) bool { return i.TurnID == turn }); i >= 0 {
		f.items = f.items[:i]
	}
}

func (f *fold) item(e protocol.Event) {
	switch {
	case e.Type == protocol.EventItemDelta:
		f.grow(e)
	case e.Type == protocol.EventItemRetracted:
		f.retract(e)
	case e.Seq == 0:
		if indexOf(f.open, e.Item.ID) >= 0 || indexOf(f.items, e.Item.ID) >= 0 {
			f.breaks("the item %s is started again", e.Item.ID)
		}
		f.open = append(f.open, *e.Item)
	case e.Item == nil:
		f.bare[e.ItemID] = e.Seq
	default:
		f.store(e)
	}
}

func indexOf(items []protocol.Item, id protocol.ItemID) int {
	return slices.IndexFunc(items, func(i protocol.Item) bool { return i.ID == id })
}

func (f *fold) grow(e protocol.Event) {
	i := indexOf(f.open, e.ItemID)
	if i < 0 || e.Offset == nil || *e.Offset != len(f.open[i].Text) {
		f.breaks("text %q at %s of item %s gives %s", e.Text, wire(e.Offset), e.ItemID, wire(f.open))
		return
	}
	f.open[i].Text += e.Text
}

func (f *fold) retract(e protocol.Event) {
	delete(f.bare, e.ItemID)
	if e.Seq != 0 {
		f.items = slices.DeleteFunc(f.items, func(i protocol.Item) bool { return i.ID == e.ItemID })
		return
	}
	i := indexOf(f.open, e.ItemID)
	if i < 0 {
		f.breaks("the item %s is withdrawn, and is not open", e.ItemID)
		return
	}
	f.open = slices.Delete(f.open, i, i+1)
}

// store adds or replaces a durable item. An item without a turn that arrives during a turn stands
// before the turn's items.
func (f *fold) store(e protocol.Event) {
	if i := indexOf(f.open, e.Item.ID); i >= 0 {
		if shown := f.open[i].Text; !strings.HasPrefix(e.Item.Text, shown) {
			f.breaks("the item %s was shown as %q, and is %q", e.Item.ID, shown, e.Item.Text)
		}
		f.open = slices.Delete(f.open, i, i+1)
	}
	if i := indexOf(f.items, e.Item.ID); i >= 0 {
		f.items[i] = *e.Item
		return
	}
	at := len(f.items)
	if e.Item.TurnID == "" {
		if i := slices.IndexFunc(f.items, func(i protocol.Item) bool { return i.TurnID != "" && f.turns[i.TurnID] == turnAccepted }); i >= 0 {
			at = i
		}
	}
	f.items = slices.Insert(f.items, at, *e.Item)
}

// settled compares the fold with the session as read at the end.
func (f *fold) settled(end *reading) error {
	items := end.items
	if f.partial {
		items = items[max(0, len(items)-len(f.items)):]
	}
	f.same("the items", f.items, items)
	f.same("the open items", f.open, nil)
	f.same("the decisions", f.decisions, end.decisions)
	f.same("the queue", f.queue, end.queue)
	f.same("the tasks", sortedTasks(f.tasks), sortedTasks(end.tasks))
	for id, seq := range f.bare {
		f.breaks("seq %d told of the item %s without it, and it was never withdrawn", seq, id)
	}
	return errors.Join(f.broken...)
}

// reading is a session as its methods return it.
type reading struct {
	session   protocol.Session
	items     []protocol.Item
	decisions []protocol.Decision
	queue     []protocol.QueuedInput
	tasks     []protocol.Task
}

func (p *peer) reading(id protocol.SessionID) *reading {
	p.t.Helper()
	r := &reading{}
	for cursor, more := "", true; more; more = cursor != "" {
		page := ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: id, Cursor: cursor})
		r.session, r.items, cursor = page.Session, append(page.Data, r.items...), page.NextCursor
	}
	r.decisions = ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data
	r.queue = ask[protocol.QueueListResult](p, "queue/list", protocol.QueueListParams{SessionID: id}).Data
	r.tasks = ask[protocol.TaskListResult](p, "task/list", protocol.TaskListParams{SessionID: id, Live: true, Limit: 1000}).Data
	return r
}
