package chat

import (
	"slices"

	"lashd/rpc/protocol"
)

// transcript is what the events of a session say, up to now. It gives out what is finished, once; the rest may still change.
type transcript struct {
	session   protocol.Session
	turn      protocol.TurnID // that runs; empty: none does
	open      []*protocol.Item
	progress  map[protocol.CallID]string // the newest line of a call
	doing     string                     // what is waited for
	decisions []protocol.Decision
	queue     []protocol.QueuedInput
	begin     []protocol.QueuedInput   // what has left it for a turn that is to begin
	tasks     map[protocol.TaskID]bool // that are live
	total     protocol.Usage

	seq protocol.Seq                  // of the newest durable event
	due *protocol.SessionAttachResult // what holds once a replay has come to its seq

	ended map[protocol.ItemID]bool
	later map[protocol.TurnID][]protocol.Event // inputs of turns that have not begun
	said  map[protocol.TurnID][]string         // inputs that were given out, of turns whose items have not come yet
}

// entry is a thing that will not change any more: an item, or a note.
type entry struct {
	item *protocol.Item
	note string
}

func newTranscript() *transcript {
	return &transcript{progress: map[protocol.CallID]string{}, ended: map[protocol.ItemID]bool{}, said: map[protocol.TurnID][]string{},
		later: map[protocol.TurnID][]protocol.Event{}, tasks: map[protocol.TaskID]bool{}}
}

// attached takes what a session is at a moment; what is older than that is still to come, unless this is the whole of it. What was
// given out before does not come again.
func (t *transcript) attached(r *protocol.SessionAttachResult) (out []entry) {
	whole := t.session.ID == "" || r.Gap != nil
	t.session, t.due, t.doing = r.Session, r, ""
	if !whole {
		t.open = slices.DeleteFunc(t.open, streamed)
		return t.arrive()
	}
	t.open, t.seq = nil, r.Seq
	if r.NextCursor != "" && len(t.ended) == 0 {
		out = append(out, entry{note: "Earlier messages are not shown. lashd session show --items N prints more."})
	}
	for i := range r.Items {
		if r.Items[i].Status == protocol.ItemInProgress {
			t.started(&r.Items[i])
		} else {
			out = append(out, t.completed(&r.Items[i])...)
		}
	}
	return append(out, t.arrive()...)
}

// streamed tells whether an item is text of the model, which is not durable before it is whole.
func streamed(i *protocol.Item) bool {
	return i.Kind == protocol.ItemAgentMessage || i.Kind == protocol.ItemReasoning
}

// arrive takes what an attachment said that the session is, once it has come there.
func (t *transcript) arrive() (out []entry) {
	r := t.due
	if r == nil || t.seq < r.Seq {
		return nil
	}
	t.due, t.turn, t.queue, t.total = nil, "", nil, r.Session.Usage
	t.decisions, t.tasks = slices.Clone(r.Decisions), map[protocol.TaskID]bool{}
	for _, task := range r.Tasks {
		t.tasks[task.ID] = true
	}
	for _, q := range r.Entered {
		if q.Wake == nil { // that is told of by its item
			out = append(out, t.input(q.TurnID, q.Input)...)
		}
	}
	if r.TurnID != "" {
		out = append(out, t.began(r.TurnID)...)
	}
	t.queue, t.begin, t.doing = slices.Clone(r.Queue), nil, ""
	for i := range r.OpenItems {
		t.started(&r.OpenItems[i])
	}
	return out
}

// apply takes an event.
func (t *transcript) apply(e protocol.Event) []entry {
	out := t.told(e)
	t.seq = max(t.seq, e.Seq)
	return append(out, t.arrive()...)
}

func (t *transcript) told(e protocol.Event) []entry {
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
		t.started(e.Item)
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
	case protocol.EventTurnCompleted:
		return t.turnEnded(e)
	default:
		return t.noticed(e)
	}
	return nil
}

// noticed takes events that are no part of the conversation.
func (t *transcript) noticed(e protocol.Event) []entry {
	switch e.Type {
	case protocol.EventDecisionOpened:
		t.decisions = append(t.decided(e.Decision.ID), *e.Decision)
	case protocol.EventDecisionResolved:
		t.decisions = t.decided(e.Decision.ID)
		if a := e.Decision.Answer; a != nil {
			return []entry{{note: Answer(e.Decision)}}
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
	case protocol.EventTaskStarted:
		t.tasks[e.Task.ID] = true
	case protocol.EventTaskCompleted:
		delete(t.tasks, e.Task.ID)
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
		return []entry{{note: "Older history was replaced by a summary."}}
	case protocol.EventSessionRewound:
		return []entry{{note: "The session returned to an earlier point."}}
	}
	return nil
}

func (t *transcript) decided(id protocol.DecisionID) []protocol.Decision {
	return slices.DeleteFunc(t.decisions, func(d protocol.Decision) bool { return d.ID == id })
}

func (t *transcript) started(item *protocol.Item) {
	if item == nil || t.ended[item.ID] || t.find(item.ID) != nil {
		return
	}
	held := *item
	t.open = append(t.open, &held)
	t.doing = ""
}

func (t *transcript) find(id protocol.ItemID) *protocol.Item {
	for _, item := range t.open {
		if item.ID == id {
			return item
		}
	}
	return nil
}

// delta adds to the text of an item. A piece that contradicts it begins the text anew there; one after a hole is left to the whole item.
func (t *transcript) delta(e protocol.Event) {
	item := t.find(e.ItemID)
	if item == nil || e.Offset == nil || *e.Offset > len(item.Text) {
		return
	}
	if end := *e.Offset + len(e.Text); end > len(item.Text) || item.Text[*e.Offset:end] != e.Text {
		item.Text = item.Text[:*e.Offset] + e.Text
	}
}

func (t *transcript) close(id protocol.ItemID) {
	t.open = slices.DeleteFunc(t.open, func(i *protocol.Item) bool { return i.ID == id })
}

// completed gives out an item, unless it was given out before.
func (t *transcript) completed(item *protocol.Item) []entry {
	if item == nil || t.ended[item.ID] {
		return nil
	}
	t.ended[item.ID] = true
	t.close(item.ID)
	delete(t.progress, item.CallID)
	if item.Kind == protocol.ItemToolCall {
		t.doing = "the model"
	}
	if item.Kind == protocol.ItemUserMessage {
		if i := slices.Index(t.said[item.TurnID], item.Text); i >= 0 {
			t.said[item.TurnID] = slices.Delete(t.said[item.TurnID], i, i+1)
			return nil
		}
	}
	return []entry{{item: item}}
}
