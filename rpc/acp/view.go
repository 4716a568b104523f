package acp

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/engine/builtin/plan"
	"lashd/rpc/protocol"
)

// update is one of the SDK's variants of a session update, with its discriminator set. Not the SDK's union of them, which would
// round numbers in what tools are called with.
type update any

// view makes updates of what happens in a session. It belongs to one goroutine.
type view struct {
	cwd    string
	window int64
	texts  map[protocol.ItemID]*text
	last   protocol.ItemID // that had text
	calls  map[sdk.ToolCallId]*shownCall
	kinds  *toolKinds

	unasked map[sdk.ToolCallId]bool // calls that wait for a person's permission, of which the editor may not know yet

	inputs map[protocol.TurnID]*protocol.Event // that others have sent, of turns that have not begun
	told   map[protocol.InputID]bool           // that were shown when their turn began
}

func newView(cwd string) *view {
	v := &view{cwd: cwd, kinds: &toolKinds{}}
	v.reset()
	return v
}

// reset forgets what is under way.
func (v *view) reset() {
	v.texts, v.calls = map[protocol.ItemID]*text{}, map[sdk.ToolCallId]*shownCall{}
	v.inputs, v.told = map[protocol.TurnID]*protocol.Event{}, map[protocol.InputID]bool{}
}

// event is what an editor is shown of it. What others have said is shown when their turn begins.
func (v *view) event(ev *protocol.Event) []update {
	if ev.Type == protocol.EventTurnAccepted {
		return nil
	}
	return append(v.opening(ev.TurnID), v.news(ev)...)
}

// accepted notes what others have said. Of a wake, history tells by itself.
func (v *view) accepted(ev *protocol.Event) {
	if len(ev.Causes) == 0 {
		v.inputs[ev.TurnID] = ev
	}
}

// opening is what a turn begins with.
func (v *view) opening(id protocol.TurnID) []update {
	ev := v.inputs[id]
	if ev == nil {
		return nil
	}
	delete(v.inputs, id)
	for _, input := range ev.InputIDs {
		v.told[input] = true
	}
	var said []update
	for _, part := range ev.Input {
		item := &protocol.Item{Kind: protocol.ItemUserMessage, Text: part.Text, Attachment: part.Attachment}
		said = append(said, chunkOf(item.Kind, string(id), blockOf(item)))
	}
	return said
}

func (v *view) news(ev *protocol.Event) []update {
	switch ev.Type {
	case protocol.EventItemStarted:
		return v.started(ev.Item)
	case protocol.EventItemDelta:
		return v.delta(ev)
	case protocol.EventItemCompleted:
		return v.completed(ev.Item)
	case protocol.EventToolProgress:
		return v.progress(ev)
	case protocol.EventRetryStatus:
		return thought(ev.Retry.String() + "\n")
	case protocol.EventPluginCustom:
		return planOf(ev)
	case protocol.EventModelRecorded:
		return v.usage(ev.Call)
	case protocol.EventSessionCompacted:
		return thought("The conversation so far was summarized.\n")
	case protocol.EventTurnCompleted:
		v.ended()
	}
	return nil
}

// ended forgets what was under way in a turn. What others ask who work for the session goes on.
func (v *view) ended() {
	waiting, calls := v.inputs, v.calls
	v.reset()
	v.inputs, v.calls = waiting, calls
	maps.DeleteFunc(calls, func(_ sdk.ToolCallId, c *shownCall) bool { return !c.below })
}

// started also takes an item that was open when the session was attached, with its text so far.
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

func (v *view) delta(ev *protocol.Event) []update {
	if v.texts[ev.ItemID] == nil || ev.Offset == nil {
		return nil
	}
	return v.chunk(ev.ItemID, *ev.Offset, ev.Text)
}

func (v *view) chunk(id protocol.ItemID, offset int, piece string) []update {
	t := v.texts[id]
	more, anew := t.piece(offset, piece)
	return v.said(id, t, more, anew)
}

// said shows more of a message. Where a message begins anew, or follows one that was left open, editors that do not look at ids are
// shown that, too.
func (v *view) said(id protocol.ItemID, t *text, more string, anew bool) []update {
	if more == "" {
		return nil
	}
	broken := v.texts[v.last] != nil && v.last != id && v.texts[v.last].kind == t.kind
	v.last = id
	if anew || broken {
		more = "\n\n" + more
	}
	message := string(id)
	if t.again > 0 {
		message += "~" + strconv.Itoa(t.again)
	}
	return []update{chunkOf(t.kind, message, sdk.TextBlock(more))}
}

// completed shows what is not shown yet of an item.
func (v *view) completed(item *protocol.Item) []update {
	switch item.Kind {
	case protocol.ItemToolCall, protocol.ItemCodeCell:
		return v.call(item)
	case protocol.ItemAgentMessage, protocol.ItemReasoning:
		t := v.texts[item.ID]
		if t == nil {
			t = &text{kind: item.Kind}
		}
		more, anew := t.whole(item.Text)
		said := v.said(item.ID, t, more, anew)
		delete(v.texts, item.ID)
		return said
	}
	return v.other(item)
}

// other is an item that does not come in pieces.
func (v *view) other(item *protocol.Item) []update {
	switch item.Kind {
	case protocol.ItemUserMessage:
		if item.Origin != nil && v.told[item.Origin.InputID] {
			return nil
		}
		return []update{chunkOf(item.Kind, string(item.ID), blockOf(item))}
	case protocol.ItemCompaction:
		return thought("The conversation so far was summarized.\n")
	}
	if item.Text == "" {
		return nil
	}
	return thought(item.Text + "\n")
}

// blockOf is an item of text, or of an attachment, as content.
func blockOf(item *protocol.Item) sdk.ContentBlock {
	if item.Attachment == nil {
		return sdk.TextBlock(item.Text)
	}
	name := item.Attachment.Name
	if name == "" {
		name = item.Attachment.Type
	}
	return sdk.TextBlock("[" + name + "]")
}

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

// thought is what lashd itself has to say.
func thought(text string) []update {
	return []update{chunkOf(protocol.ItemReasoning, "", sdk.TextBlock(text))}
}

// usage is how full the model's context is, where its size is known.
func (v *view) usage(c *protocol.CallRecord) []update {
	if c == nil || c.Usage == nil || v.window == 0 {
		return nil
	}
	return []update{&sdk.SessionUsageUpdate{Size: int(v.window), Used: int(c.Usage.Total()), SessionUpdate: "usage_update"}}
}

// planOf is a plan that the model has written.
func planOf(ev *protocol.Event) []update {
	if ev.Plugin != plan.ID || ev.Name != plan.ID {
		return nil
	}
	var p plan.Plan
	if json.Unmarshal(ev.Body, &p) != nil {
		return nil // a plugin that took the place of the built-in one has plans of another kind
	}
	return []update{planUpdate(p)}
}

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

// send shows updates, in their order. An editor that has gone is noticed elsewhere.
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
