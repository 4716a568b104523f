package chat

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"lashd/cmd/lash/prompt"
	"lashd/rpc/protocol"
)

// transcript is the state of a session as its events describe it. Methods that
// apply an event return the entries that the event finished; each entry is
// returned once and never changes. Unfinished items stay in open.
//
// It tolerates the repetitions of a reconnect: an item, an input or a piece of
// text that arrives again changes nothing. A transcript is not safe for concurrent
// use.
type transcript struct {
	session   protocol.Session
	turn      protocol.TurnID                   // the running turn, or ""
	open      []*protocol.Item                  // unfinished items, in order
	finished  []entry                           // all that was shown, in order, after what precede has added
	preceded  int                               // how many entries precede has added
	older     string                            // leads to items from before the attach that finished lacks; "": it has all
	reading   bool                              // the next of them are read
	plan      plan                              // of the agent
	progress  map[protocol.CallID]string        // newest progress line of each call
	doing     string                            // what the turn waits for, such as "the model"; "" while text streams
	decisions []protocol.Decision               // open ones, oldest first
	ends      map[protocol.DecisionID]time.Time // when the default answer to an open decision applies, by the clock of this process
	written   string                            // the newest message of a person
	refused   *refusedCall                      // the newest call that the sandbox refused, until the next input
	queue     []protocol.QueuedInput            // inputs that no turn has used
	starting  []protocol.QueuedInput            // inputs that have left the queue for a turn that is about to start
	tasks     []protocol.Task                   // running tasks, in the order in which they began
	total     protocol.Usage                    // of the session's own ended turns
	context   *protocol.Usage                   // of the newest model call; nil: none since the history was compacted or rewound

	seq protocol.Seq                  // number of the newest durable event applied
	due *protocol.SessionAttachResult // state of the session at due.Seq; arrive applies it once the replay reaches that event

	code      map[protocol.ItemID]bool             // code cells that run; the log has their start
	ended     map[protocol.ItemID]bool             // items whose entries were returned
	withdrawn map[protocol.TurnID]bool             // queued turns whose input the user has taken back
	later     map[protocol.TurnID][]protocol.Event // turn/accepted events of turns that have not started
	said      map[protocol.TurnID][]string         // inputs whose entries were returned before their items arrived
}

// entry is a finished line of the transcript: an item or, if item is nil, a note
// of the chat itself.
type entry struct {
	item   *protocol.Item
	note   string
	answer bool // the note says how a question about a call was answered
}

func newTranscript() *transcript {
	return &transcript{progress: map[protocol.CallID]string{}, ended: map[protocol.ItemID]bool{}, withdrawn: map[protocol.TurnID]bool{}, code: map[protocol.ItemID]bool{}, said: map[protocol.TurnID][]string{},
		later: map[protocol.TurnID][]protocol.Event{}, ends: map[protocol.DecisionID]time.Time{}}
}

// attached applies the answer to session/attach. For a new transcript or after a
// gap, r has the whole session. Otherwise the missing events follow as a replay,
// and r is applied at its end. Entries that were returned before are not returned
// again. Text that was streaming is dropped: it is not in the log, and the daemon
// streams it again.
func (t *transcript) attached(r *protocol.SessionAttachResult) (out []entry) {
	whole := t.session.ID == "" || r.Gap != nil
	t.session, t.due, t.doing = r.Session, r, ""
	if !whole {
		t.open = slices.DeleteFunc(t.open, t.streamed)
		return t.arrive()
	}
	t.open, t.seq, t.context = nil, r.Seq, r.Context
	if r.NextCursor != "" && len(t.ended) == 0 {
		t.older = r.NextCursor
		out = append(out, entry{note: "Earlier messages are not shown here. Ctrl-T shows them; lash session show --items N prints them."})
	}
	for i := range r.Items {
		if r.Items[i].Status == protocol.ItemInProgress {
			t.started(&r.Items[i], true)
		} else {
			out = append(out, t.completed(&r.Items[i])...)
		}
	}
	return append(out, t.arrive()...)
}

// streamed reports whether an item is text of the model, or code that does not run
// yet. Such an item is durable only when it is complete, so a reconnect starts it
// again.
func (t *transcript) streamed(i *protocol.Item) bool {
	return i.Kind == protocol.ItemAgentMessage || i.Kind == protocol.ItemReasoning || i.Kind == protocol.ItemCodeCell && !t.code[i.ID]
}

// arrive applies the state of the last attach once all events up to it have been
// applied. Before that it does nothing, so that the replay is shown in order. It
// replaces the turn, the queue, the decisions and the tasks by those in the
// answer.
func (t *transcript) arrive() (out []entry) {
	r := t.due
	if r == nil || t.seq < r.Seq {
		return nil
	}
	t.due, t.turn, t.queue, t.total = nil, "", nil, r.Session.Usage
	t.decisions, t.tasks = slices.Clone(r.Decisions), slices.Clone(r.Tasks)
	for _, d := range r.Decisions {
		t.counts(d, d.RemainingMs)
	}
	for _, q := range r.Entered {
		if q.Wake == nil { // the item of a wake shows it
			out = append(out, t.input(q.TurnID, q.Input)...)
		}
	}
	if r.TurnID != "" {
		out = append(out, t.began(r.TurnID)...)
	}
	t.queue, t.starting, t.doing = slices.Clone(r.Queue), nil, ""
	for i := range r.OpenItems {
		t.started(&r.OpenItems[i], false)
	}
	return out
}

// apply applies an event and returns the entries that it finished.
func (t *transcript) apply(e protocol.Event) []entry {
	out := t.applyEvent(e)
	t.seq = max(t.seq, e.Seq)
	return append(out, t.arrive()...)
}

// applyEvent dispatches the events of a conversation and leaves the rest to
// noticed.
func (t *transcript) applyEvent(e protocol.Event) []entry {
	switch e.Type {
	case protocol.EventTurnAccepted:
		return t.accepted(e)
	case protocol.EventTurnStarted:
		return t.began(e.TurnID)
	case protocol.EventModelRequested:
		t.doing = "the model"
	case protocol.EventInputAccepted:
		return t.entered(e)
	case protocol.EventItemStarted:
		t.started(e.Item, e.Seq != 0)
	case protocol.EventItemDelta:
		t.delta(e)
	case protocol.EventItemRetracted:
		t.close(e.ItemID)
	case protocol.EventItemCompleted:
		return t.completed(e.Item)
	case protocol.EventToolProgress:
		if e.ToolCall != nil {
			t.progress[e.ToolCall.CallID] = e.Text
		}
	case protocol.EventCellCall:
		t.cellCall(e)
	case protocol.EventTurnCompleted:
		return t.turnEnded(e)
	default:
		return t.noticed(e)
	}
	return nil
}

// noticed applies events that are not part of the conversation. Unknown events are
// ignored, so that an older chat works with a newer daemon.
func (t *transcript) noticed(e protocol.Event) []entry {
	switch e.Type {
	case protocol.EventDecisionOpened:
		t.decisions = append(t.decided(e.Decision.ID), *e.Decision)
		t.counts(*e.Decision, e.Decision.DeadlineMs-e.Decision.OpenedAtMs)
	case protocol.EventDecisionResolved:
		t.decisions = t.decided(e.Decision.ID)
		delete(t.ends, e.Decision.ID)
		if a := e.Decision.Answer; a != nil {
			return []entry{{note: Answer(e.Decision), answer: e.Decision.Kind == protocol.DecisionApproval}}
		}
	case protocol.EventQueueChanged:
		t.requeued(e.Queue)
	case EventNote:
		return []entry{{note: e.Text}}
	case protocol.EventRetryStatus:
		return []entry{{note: retryNote(e.Retry)}}
	case protocol.EventPluginStatus:
		if e.AboutServer() {
			return []entry{{note: e.Text}}
		}
	case protocol.EventUsageUpdated:
		if e.Total != nil {
			t.total = *e.Total
		}
	case protocol.EventModelRecorded:
		if e.Call != nil && e.Call.Usage != nil {
			t.context = e.Call.Usage
		}
	case protocol.EventTaskStarted:
		t.tasks = append(t.without(e.Task.ID), *e.Task)
	case protocol.EventTaskChanged:
		t.changed(e.Task)
	case protocol.EventTaskCompleted:
		t.tasks = t.without(e.Task.ID)
		if e.Task.Outcome != nil {
			t.refused = cmp.Or(refusedIn(e.Task.Outcome.Refusal, ""), t.refused)
		}
	case protocol.EventPluginCustom:
		t.plan = t.plan.applied(e)
	case protocol.EventSessionConfigured:
		if e.Config != nil {
			t.session.Config = *e.Config
		}
		if e.Title != "" {
			t.session.Title = e.Title
		}
	case protocol.EventFilePoint:
		if note := pointNote(e.Point); note != "" {
			return []entry{{note: note}}
		}
	case protocol.EventSessionCompacted:
		t.context = nil
		return []entry{{note: "Older history was replaced by a summary."}}
	case protocol.EventSessionRewound:
		t.context = nil
		return []entry{{note: "The conversation went back to an earlier point."}}
	}
	return nil
}

// counts stores when the default answer to a decision applies, left milliseconds from
// now. Only durations of the daemon count, because the clock of this machine may be
// wrong.
func (t *transcript) counts(d protocol.Decision, left int64) {
	if d.DeadlineMs > 0 && left > 0 {
		t.ends[d.ID] = time.Now().Add(time.Duration(left) * time.Millisecond)
	}
}

// asks reports whether an open decision is about a call.
func (t *transcript) asks(id protocol.CallID) bool {
	return slices.ContainsFunc(t.decisions, func(d protocol.Decision) bool { return d.Call != nil && d.Call.CallID == id })
}

// decided returns the open decisions without the one that was resolved.
func (t *transcript) decided(id protocol.DecisionID) []protocol.Decision {
	return slices.DeleteFunc(t.decisions, func(d protocol.Decision) bool { return d.ID == id })
}

// started adds an unfinished item, unless the transcript has it already. A start
// that is in the log replaces the item as it has streamed. It keeps a copy, because
// delta changes its text.
func (t *transcript) started(item *protocol.Item, logged bool) {
	if item == nil || t.ended[item.ID] {
		return
	}
	if logged && item.Kind == protocol.ItemCodeCell {
		t.code[item.ID] = true
	}
	if known := t.find(item.ID); known != nil {
		if logged {
			calls := known.Cell
			*known = *item
			known.Cell = cmp.Or(known.Cell, calls)
		}
		return
	}
	held := *item
	t.open = append(t.open, &held)
	t.doing = ""
}

// find returns an unfinished item, or nil.
func (t *transcript) find(id protocol.ItemID) *protocol.Item {
	for _, item := range t.open {
		if item.ID == id {
			return item
		}
	}
	return nil
}

// delta adds streamed text to an item. If the text differs from the text already
// at its offset, it replaces that text and the rest. Text beyond the end of the
// item is dropped: the completed item has it.
func (t *transcript) delta(e protocol.Event) {
	item := t.find(e.ItemID)
	if item == nil || e.Offset == nil || *e.Offset > len(item.Text) {
		return
	}
	if end := *e.Offset + len(e.Text); end > len(item.Text) || item.Text[*e.Offset:end] != e.Text {
		item.Text = item.Text[:*e.Offset] + e.Text
	}
}

// cellCall adds a call to an unfinished code cell. Its result replaces these calls.
func (t *transcript) cellCall(e protocol.Event) {
	item := t.find(e.ItemID)
	if item == nil || e.CellCall == nil {
		return
	}
	if item.Cell == nil {
		item.Cell = &protocol.CodeResult{}
	}
	item.Cell.AddCall(*e.CellCall)
}

// close removes an unfinished item.
func (t *transcript) close(id protocol.ItemID) {
	t.open = slices.DeleteFunc(t.open, func(i *protocol.Item) bool { return i.ID == id })
}

// completed returns the entry of a finished item, unless it was returned before. A
// user message whose input was shown already has no entry.
func (t *transcript) completed(item *protocol.Item) []entry {
	if item == nil || t.ended[item.ID] {
		return nil
	}
	t.ended[item.ID] = true
	t.close(item.ID)
	delete(t.progress, item.CallID)
	delete(t.code, item.ID)
	if item.Kind == protocol.ItemToolCall || item.Kind == protocol.ItemCodeCell {
		t.doing = "the model"
	}
	if item.Output != nil {
		t.refused = cmp.Or(refusedIn(item.Output.Refusal, item.Tool), t.refused)
	}
	if item.Kind == protocol.ItemUserMessage && item.Text == "" && item.Attachment != nil {
		return t.attachment(item)
	}
	if _, _, command := item.AddedText(); item.Kind == protocol.ItemUserMessage && !command {
		t.written = cmp.Or(item.Text, t.written)
		if i := slices.Index(t.said[item.TurnID], item.Text); i >= 0 {
			t.said[item.TurnID] = slices.Delete(t.said[item.TurnID], i, i+1)
			return nil
		}
	}
	return []entry{{item: item}}
}

// attachment returns the entry of a file that was sent with a message, unless the text of the
// message names it.
func (t *transcript) attachment(item *protocol.Item) []entry {
	label := prompt.Named(item.Attachment)
	if strings.Contains(t.written, label) {
		return nil
	}
	return []entry{{item: &protocol.Item{Kind: item.Kind, Text: label}}}
}
