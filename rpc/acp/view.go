package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/engine/builtin/plan"
	"lashd/rpc/protocol"
)

// update is one of the SDK's variants of a session update, with its discriminator
// set. The SDK's union type is not used, because it would decode tool arguments
// and round large numbers.
type update any

// view turns a session's events and items into updates for the editor, and
// remembers what the editor already shows. It belongs to the session's goroutine;
// before that goroutine starts, to the request that opens the session.
type view struct {
	cwd    string                        // workspace; paths in updates are absolute
	window int64                         // context window of the model in tokens; 0 if unknown
	texts  map[protocol.ItemID]*text     // messages that are streaming
	last   protocol.ItemID               // item of the newest message text
	calls  map[sdk.ToolCallId]*shownCall // unfinished calls that the editor shows
	used   int64                         // tokens of the newest model call; 0 if unknown
	kinds  *toolKinds
	image  func(*protocol.Attachment) (sdk.ContentBlock, bool) // reads an image; false if it cannot be shown

	// pendingApprovals are the calls that wait for approval, including those that
	// the editor has not been shown.
	pendingApprovals map[sdk.ToolCallId]bool

	// inputs are accepted inputs of other clients, by turn. They are shown when
	// their turn begins, and shownInputs remembers them until it ends, so that the
	// stored message is not shown again.
	inputs      map[protocol.TurnID]*protocol.Event
	shownInputs map[protocol.InputID]bool
}

// newView returns an empty view for a session in cwd.
func newView(cwd string) *view {
	v := &view{cwd: cwd, kinds: &toolKinds{}}
	v.reset()
	return v
}

// reset forgets all messages, calls and inputs in progress.
func (v *view) reset() {
	v.texts, v.calls = map[protocol.ItemID]*text{}, map[sdk.ToolCallId]*shownCall{}
	v.inputs, v.shownInputs = map[protocol.TurnID]*protocol.Event{}, map[protocol.InputID]bool{}
}

// event returns the updates for an event. The first event of a turn also brings
// the inputs that other clients sent for it.
func (v *view) event(ev *protocol.Event) []update {
	if ev.Type == protocol.EventTurnAccepted {
		return nil
	}
	return append(v.turnInputs(ev.TurnID), v.updatesFor(ev)...)
}

// accepted remembers an input of another client. Wakes are left out: history has
// an item for each.
func (v *view) accepted(ev *protocol.Event) {
	if len(ev.Causes) == 0 {
		v.inputs[ev.TurnID] = ev
	}
}

// turnInputs returns the remembered inputs of a turn as user messages, once.
func (v *view) turnInputs(id protocol.TurnID) []update {
	ev := v.inputs[id]
	if ev == nil {
		return nil
	}
	delete(v.inputs, id)
	for _, input := range ev.InputIDs {
		v.shownInputs[input] = true
	}
	var updates []update
	for _, part := range ev.Input {
		item := &protocol.Item{Kind: protocol.ItemUserMessage, Text: part.Text, Attachment: part.Attachment}
		updates = append(updates, chunkOf(item.Kind, string(id), v.blockOf(item)))
	}
	return updates
}

// updatesFor returns the updates for an event alone. Most event types have none.
func (v *view) updatesFor(ev *protocol.Event) []update {
	switch ev.Type {
	case protocol.EventItemStarted:
		return v.started(ev.Item)
	case protocol.EventItemDelta:
		return v.delta(ev)
	case protocol.EventItemCompleted:
		return v.completed(ev.Item)
	case protocol.EventToolProgress:
		return v.progress(ev)
	case protocol.EventCellCall:
		return v.cellCall(ev)
	case protocol.EventRetryStatus:
		return thought(ev.Retry.String() + "\n")
	case protocol.EventPluginCustom:
		return planOf(ev)
	case protocol.EventModelRecorded:
		return v.usage(ev.Call)
	case protocol.EventUsageUpdated:
		return v.cost(ev.Total)
	case protocol.EventSessionCompacted:
		return thought("The conversation so far was summarized.\n")
	case protocol.EventTurnCompleted:
		v.ended()
	}
	return nil
}

// ended forgets a finished turn. Inputs for later turns stay, and so do calls of
// subagents, which outlive the turn.
func (v *view) ended() {
	waiting, calls := v.inputs, v.calls
	v.reset()
	v.inputs, v.calls = waiting, calls
	maps.DeleteFunc(calls, func(_ sdk.ToolCallId, c *shownCall) bool { return !c.below })
}

// started shows a new item. It also takes an item that was already open when the
// session was attached, with its text so far.
func (v *view) started(item *protocol.Item) []update {
	switch item.Kind {
	case protocol.ItemToolCall, protocol.ItemCodeCell:
		return v.call(item)
	case protocol.ItemAgentMessage, protocol.ItemReasoning:
		t := v.texts[item.ID]
		if t == nil {
			t = &text{kind: item.Kind}
			v.texts[item.ID] = t
		}
		t.restart()
		return v.chunk(item.ID, 0, item.Text)
	}
	return nil
}

// delta shows a piece of a streaming message. Pieces of messages whose start was
// not seen are dropped; the completed item brings their text.
func (v *view) delta(ev *protocol.Event) []update {
	if v.texts[ev.ItemID] == nil || ev.Offset == nil {
		return nil
	}
	return v.chunk(ev.ItemID, *ev.Offset, ev.Text)
}

// chunk shows the new part of a piece at a byte offset.
func (v *view) chunk(id protocol.ItemID, offset int, piece string) []update {
	t := v.texts[id]
	more, restarted := t.piece(offset, piece)
	return v.textUpdates(id, t, more, restarted)
}

// textUpdates shows more text of a message. A restarted message gets a new message
// id. For editors that ignore ids, a blank line separates it, and also a message
// that follows an unfinished one.
func (v *view) textUpdates(id protocol.ItemID, t *text, more string, restarted bool) []update {
	if more == "" {
		return nil
	}
	broken := v.texts[v.last] != nil && v.last != id && v.texts[v.last].kind == t.kind
	v.last = id
	if restarted || broken {
		more = "\n\n" + more
	}
	message := string(id)
	if t.restarts > 0 {
		message += "~" + strconv.Itoa(t.restarts)
	}
	return []update{chunkOf(t.kind, message, sdk.TextBlock(more))}
}

// completed shows an item that is stored, and as much of its text as the editor
// has not been shown. It serves both new items and history.
func (v *view) completed(item *protocol.Item) []update {
	switch item.Kind {
	case protocol.ItemToolCall, protocol.ItemCodeCell:
		return v.call(item)
	case protocol.ItemAgentMessage, protocol.ItemReasoning:
		t := v.texts[item.ID]
		if t == nil {
			t = &text{kind: item.Kind}
		}
		more, restarted := t.whole(item.Text)
		updates := v.textUpdates(item.ID, t, more, restarted)
		delete(v.texts, item.ID)
		return updates
	}
	return v.other(item)
}

// other shows an item that arrives whole: a user message, a compaction, a notice.
func (v *view) other(item *protocol.Item) []update {
	switch item.Kind {
	case protocol.ItemUserMessage:
		if title, n, ok := item.AddedText(); ok {
			return thought(fmt.Sprintf("%s (%d lines)\n", title, n))
		}
		if item.Origin != nil && v.shownInputs[item.Origin.InputID] {
			return nil
		}
		return []update{chunkOf(item.Kind, string(item.ID), v.blockOf(item))}
	case protocol.ItemCompaction:
		return thought("The conversation so far was summarized.\n")
	}
	if item.Text == "" {
		return nil
	}
	return thought(item.Text + "\n")
}

// blockOf converts an item to content: its text, its image, or the name of another
// attachment in brackets.
func (v *view) blockOf(item *protocol.Item) sdk.ContentBlock {
	if item.Attachment == nil {
		return sdk.TextBlock(item.Text)
	}
	if block, ok := v.imageOf(item.Attachment); ok {
		return block
	}
	name := item.Attachment.Name
	if name == "" {
		name = item.Attachment.Type
	}
	return sdk.TextBlock("[" + name + "]")
}

// chunkOf makes a message chunk. The kind of item decides whose message it is;
// kinds other than user and agent messages are shown as thoughts. id may be empty.
func chunkOf(kind protocol.ItemKind, id string, block sdk.ContentBlock) update {
	var message *string
	if id != "" {
		message = &id
	}
	switch kind {
	case protocol.ItemUserMessage:
		return &sdk.SessionUpdateUserMessageChunk{Content: block, MessageId: message, SessionUpdate: "user_message_chunk"}
	case protocol.ItemAgentMessage:
		return &sdk.SessionUpdateAgentMessageChunk{Content: block, MessageId: message, SessionUpdate: "agent_message_chunk"}
	}
	return &sdk.SessionUpdateAgentThoughtChunk{Content: block, MessageId: message, SessionUpdate: "agent_thought_chunk"}
}

// thought is a notice of lashd itself. The protocol has no notices, so it is shown
// as a thought.
func thought(text string) []update {
	return []update{chunkOf(protocol.ItemReasoning, "", sdk.TextBlock(text))}
}

// usage shows how many tokens of the context window are used. It is empty if the
// model's window size is unknown.
func (v *view) usage(c *protocol.CallRecord) []update {
	if c == nil || c.Usage == nil || v.window == 0 {
		return nil
	}
	v.used = c.Usage.Total()
	return []update{&sdk.SessionUsageUpdate{Size: int(v.window), Used: int(v.used), SessionUpdate: "usage_update"}}
}

// cost shows what a session has cost in all, with its subagents. It is empty for
// models without a price. The protocol reports costs only with the context, so it
// is also empty as long as that is unknown.
func (v *view) cost(total *protocol.Usage) []update {
	if total == nil || total.Cost == 0 || v.window == 0 || v.used == 0 {
		return nil
	}
	dollars := &sdk.Cost{Amount: float64(total.Cost) / 1e9, Currency: "USD"}
	return []update{&sdk.SessionUsageUpdate{Size: int(v.window), Used: int(v.used), Cost: dollars, SessionUpdate: "usage_update"}}
}

// planOf shows a new plan of the plan plugin.
func planOf(ev *protocol.Event) []update {
	if ev.Plugin != plan.ID || ev.Name != plan.ID {
		return nil
	}
	var p plan.Plan
	if json.Unmarshal(ev.Body, &p) != nil {
		return nil // a plugin that replaces the built-in one may have another format
	}
	return []update{planUpdate(p)}
}

// planUpdate converts a plan. lashd's steps have no priority, so all get medium.
func planUpdate(p plan.Plan) update {
	status := map[plan.Status]sdk.PlanEntryStatus{plan.InProgress: sdk.PlanEntryStatusInProgress, plan.Completed: sdk.PlanEntryStatusCompleted}
	entries := []sdk.PlanEntry{}
	for _, step := range p.Steps {
		entry := sdk.PlanEntry{Content: step.Text, Priority: sdk.PlanEntryPriorityMedium, Status: sdk.PlanEntryStatusPending}
		if known, ok := status[step.Status]; ok {
			entry.Status = known
		}
		entries = append(entries, entry)
	}
	return &sdk.SessionUpdatePlan{Entries: entries, SessionUpdate: "plan"}
}

// send sends updates in order. Errors are only logged: the connection's end is
// noticed by Run.
func (s *ref) send(ctx context.Context, updates ...update) {
	for _, u := range updates {
		params := struct {
			SessionID protocol.SessionID `json:"sessionId"`
			Update    update             `json:"update"`
		}{s.id, u}
		if err := s.conn.SendNotification(ctx, sdk.ClientMethodSessionUpdate, params); err != nil && ctx.Err() == nil {
			s.Log.Debug("could not send an update", "session", s.id, "error", err)
		}
	}
}
