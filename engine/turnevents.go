package engine

import (
	"slices"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// start sets the turn's machine. Its first messages become nodes.
func (j *journal) start(m *turn.Machine) {
	j.machine = m
	j.noteNodes()
}

// These forward to the machine, which start has set.
func (j *journal) next() (turn.Effect, bool)    { return j.machine.Next() }
func (j *journal) messages() []protocol.Message { return j.machine.Messages() }
func (j *journal) result() turn.Result          { return j.machine.Result() }

// finished reports whether the turn has an outcome. Before plugins have decided how it begins,
// there is no machine and no outcome.
func (j *journal) finished() bool { return j.machine != nil && j.machine.Finished() }

// deliver gives the machine an answer that is in the journal already or need not be.
func (j *journal) deliver(id uint64, answer turn.Response) {
	j.machine.Deliver(id, answer)
	j.noteNodes()
}

// fail ends the turn with an issue and the given kind of outcome.
func (j *journal) fail(kind protocol.OutcomeKind, issue protocol.Issue) {
	j.machine.Fail(kind, issue)
	j.noteNodes()
}

// cancel ends the turn as cancelled.
func (j *journal) cancel(evidence protocol.CancelEvidence) {
	j.machine.Cancel(evidence, nil)
	j.noteNodes()
}

// switchFrame ends the turn and lets another turn continue in another frame.
func (j *journal) switchFrame(to *protocol.FrameSwitch) {
	j.machine.Switch(to)
	j.noteNodes()
}

// noteNodes turns new messages of the machine into nodes. Nodes that the log has already keep their
// time, so that a replay produces the same nodes.
func (j *journal) noteNodes() {
	j.mu.Lock()
	defer j.mu.Unlock()
	msgs := j.messages()
	for i := len(j.nodes); i < len(msgs); i++ {
		at := now()
		if i < len(j.logged.Nodes) {
			at = j.logged.Nodes[i].AtMs
		}
		j.addNode(msgs[i], at)
	}
}

// append adds messages to the turn's future history that its machine does not know, such as those
// of hooks after the turn.
func (j *journal) append(msgs []protocol.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, msg := range msgs {
		j.addNode(msg, now())
	}
}

// addNode appends one node. The caller holds mu.
func (j *journal) addNode(msg protocol.Message, at int64) {
	j.nodes = append(j.nodes, protocol.Node{ID: j.nodeID(len(j.nodes)), TurnID: j.turn, Frame: j.begin.Frame, AtMs: at, Message: graph.Undecided(&msg)})
}

// decide stores the decisions over calls in their nodes, so that the events and the history have them. Calls of other calls have no
// node.
func (j *journal) decide(calls []*toolCall) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range calls {
		if d := s.decided.Decision(); d != nil && s.Parent == "" {
			graph.Decide(j.nodes, s.CallID, d)
		}
	}
}

// nodeID derives the id of the turn's n-th node from session and turn, so that a replay finds the
// same ids.
func (j *journal) nodeID(n int) protocol.NodeID {
	return protocol.DeriveNodeID(j.session, string(j.turn), n)
}

// draft returns a copy of a node by id, or nil. Any goroutine may call it.
func (j *journal) draft(id protocol.NodeID) *protocol.Node {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.nodes {
		if j.nodes[i].ID == id {
			n := j.nodes[i]
			return &n
		}
	}
	return nil
}

// drafts returns the nodes whose items the log has, as its events show them: a call whose item started without a
// decision gets it when the item is completed. Only the actor calls it, because only the actor changes logged.
func (j *journal) drafts() []protocol.Node {
	j.mu.Lock()
	defer j.mu.Unlock()
	nodes := slices.Clone(j.nodes[:min(len(j.logged.Nodes), len(j.nodes))])
	for i := range nodes {
		for _, part := range j.logged.Nodes[i].Undecided {
			if call := nodes[i].Message.Parts[part].Call; !graph.HasResult(nodes[i:], call.CallID) {
				graph.Decide(nodes[i:i+1], call.CallID, nil)
			}
		}
	}
	return nodes
}

// newEvents returns the events that the log does not have yet, and the progress after them. Calls
// and code cells without a result appear as started items, all others as completed ones. It changes nothing: the
// commit that stores the events also stores the progress, and only then logged follows.
func (j *journal) newEvents(result turn.Result) (progress, []change.Event) {
	var events []change.Event
	p := progress{Calls: j.logged.Calls, Emits: j.logged.Emits, Nodes: slices.Clip(j.logged.Nodes)}
	for ; p.Calls < len(result.Calls); p.Calls++ {
		call := result.Calls[p.Calls]
		events = append(events, change.Event{Event: protocol.Event{Type: protocol.EventModelRecorded, TurnID: j.turn, Call: &call}})
	}
	for ; p.Emits < len(j.emits); p.Emits++ {
		e := j.emits[p.Emits]
		events = append(events, change.Event{Event: protocol.Event{Type: protocol.EventPluginCustom, TurnID: j.turn, Name: e.Type, Body: e.Body}})
	}
	for i := len(p.Nodes); i < len(j.nodes); i++ {
		told, items := j.itemEvents(&j.nodes[i])
		events = append(events, told...)
		p.Nodes = append(p.Nodes, nodeProgress{AtMs: j.nodes[i].AtMs, Items: items, Undecided: undecided(told)})
	}
	return p, events
}

// undecided returns the parts of one node whose events start a call without a decision.
func undecided(events []change.Event) (parts []int) {
	for _, e := range events {
		if e.Ref.Undecided && e.Item.Kind == protocol.ItemToolCall {
			parts = append(parts, e.Ref.Part)
		}
	}
	return parts
}

// itemEvents returns the events of a node's parts, and the indexes of the parts that became items.
// A tool result or the output of a code cell completes the item of its call or code instead of becoming an item.
func (j *journal) itemEvents(n *protocol.Node) (events []change.Event, items []int) {
	for p := range n.Message.Parts {
		e, completes := j.outputEvent(n, p)
		if n.Message.Parts[p].Kind == protocol.PartToolResult {
			if e, completes = j.resultEvent(n, p); !completes {
				continue
			}
		}
		if completes {
			events = append(events, e)
			continue
		}
		item := graph.PartItem(n, p)
		kind := protocol.EventItemCompleted
		if item.Status == protocol.ItemInProgress {
			kind = protocol.EventItemStarted
		}
		events, items = append(events, j.itemEvent(kind, item, ref{Node: n.ID, Part: p, Undecided: kind == protocol.EventItemStarted && item.Decision == nil})), append(items, p)
	}
	return events, items
}

// itemEvent returns an event about an item with the reference that the log stores in its place.
func (j *journal) itemEvent(kind protocol.EventType, item protocol.Item, of ref) change.Event {
	return change.Event{Ref: &of, Event: protocol.Event{Type: kind, TurnID: j.turn, ItemID: item.ID, Item: &item}}
}

// resultEvent returns the event that completes the item of the call that a result belongs to. It
// looks for the newest call with that id and reports false if the turn has none.
func (j *journal) resultEvent(n *protocol.Node, part int) (change.Event, bool) {
	result := n.Message.Parts[part].Result
	for i := len(j.nodes) - 1; i >= 0; i-- {
		for p := range j.nodes[i].Message.Parts {
			call := j.nodes[i].Message.Parts[p].Call
			if call == nil || call.CallID != result.CallID {
				continue
			}
			item := graph.PartItem(&j.nodes[i], p)
			graph.Complete(&item, result)
			return j.itemEvent(protocol.EventItemCompleted, item, ref{Node: j.nodes[i].ID, Part: p, Result: n.ID, ResultPart: part}), true
		}
	}
	return change.Event{}, false
}

// outputEvent returns the event that completes the item of a code cell with an output. It reports false for other parts, and
// if no code of the turn waits for an output.
func (j *journal) outputEvent(n *protocol.Node, part int) (change.Event, bool) {
	if n.Message.Parts[part].Kind != protocol.PartOutput {
		return change.Event{}, false
	}
	at := slices.IndexFunc(j.nodes, func(other protocol.Node) bool { return other.ID == n.ID })
	items, refs := graph.Shown(j.nodes[:at+1])
	for i, r := range slices.Backward(refs) {
		if r.Result == n.ID && r.ResultPart == part && items[i].Kind == protocol.ItemCodeCell {
			return j.itemEvent(protocol.EventItemCompleted, items[i], r), true
		}
	}
	return change.Event{}, false
}

// closing returns the last events of a turn that becomes history, and withdraws items of nodes that
// the replay did not produce again.
func (j *journal) closing(result turn.Result) []change.Event {
	_, events := j.newEvents(result)
	if gone := len(j.logged.Nodes) - len(j.nodes); gone > 0 { // the log has more nodes than the replay produced
		all := j.logged.retractions(j.session, j.turn)
		kept := progress{Nodes: j.logged.Nodes[:len(j.nodes)]}
		events = append(events, all[len(kept.retractions(j.session, j.turn)):]...)
	}
	return events
}

// withdrawal is closing for a turn that does not become history: all its items are withdrawn.
func (j *journal) withdrawal(result turn.Result) []change.Event {
	var events []change.Event
	for i := j.logged.Calls; i < len(result.Calls); i++ {
		events = append(events, change.Event{Event: protocol.Event{Type: protocol.EventModelRecorded, TurnID: j.turn, Call: &result.Calls[i]}})
	}
	return append(events, j.logged.retractions(j.session, j.turn)...)
}

// ledger returns one usage row for each model call after the first ones. A call that was
// interrupted by a crash may have been made twice: it counts as two calls, one of them with unknown
// tokens.
func (j *journal) ledger(result turn.Result, first int) []persistence.Usage {
	var rows []persistence.Usage
	for i := first; i < len(result.Calls); i++ {
		call := &result.Calls[i]
		row := protocol.UsageRow{Source: "turn", Model: call.Model, Calls: 1}
		if call.Usage != nil {
			row.Usage = *call.Usage
		} else {
			row.Unknown = 1
		}
		for _, a := range call.Attempts {
			if a.Outcome == protocol.AttemptInterrupted {
				row.Calls++
				row.Unknown++
			}
		}
		rows = append(rows, persistence.Usage{Operation: string(j.turn), Ordinal: i, Row: row})
	}
	return rows
}
