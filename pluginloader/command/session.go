package command

import (
	"context"
	"slices"
	"strings"
	"sync"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// session is the state of the plugin's hooks in one session. The engine creates it when the session
// opens and calls its methods from the session's turns. The methods are safe for concurrent use,
// because tool calls of one turn may run at the same time.
//
// Hooks around a tool call cannot add messages themselves. Their texts wait in pending until the
// next checkpoint of the turn, and a decision to end the turn waits in halted.
type session struct {
	part       *Part
	build      plugin.BuildContext
	transcript *transcript

	mu      sync.Mutex
	begun   bool            // the hooks for the start of the session have run
	turn    protocol.TurnID // the turn that pending and halted belong to
	pending []string        // texts for the model at the next checkpoint of turn
	halted  string          // reason to end turn at its next checkpoint; empty: none

	talkOf protocol.TurnID    // the turn that talk belongs to
	talk   []protocol.Message // the conversation with what that turn had added by its newest checkpoint
}

// compactPriority runs the hooks before any plugin that writes a summary, so that they can prevent
// it.
const compactPriority = 1_000_000

// register registers with the engine for the events that have hooks. Events without hooks cost
// nothing.
func (s *session) register(r *plugin.Registrar) {
	r.Turn().Before(s.beforeTurn)
	if s.has("PreToolUse") {
		r.ToolCalls().Before(s.beforeToolCall)
	}
	if s.has("PostToolUse", "PostToolUseFailure") {
		r.ToolResults().After(s.afterToolCall)
	}
	if s.has("Stop", "SubagentStop", "PreToolUse", "PostToolUse", "PostToolUseFailure") {
		r.Turn().Checkpoint(s.checkpoint)
	}
	if s.has("Interrupt", "StopFailure") {
		r.Turn().After(s.afterTurn)
	}
	if s.has("PreModelRequest") {
		r.Context().Transform(0, s.beforeModel)
	}
	if s.has("PostModelRequest") {
		r.Output().Response(s.afterModel)
	}
	if s.has("PreCompact") {
		r.Context().Compactor(compactPriority, s.beforeCompaction)
	}
	if s.has("ConfigChange") {
		r.Session().On(s.configChanged)
	}
	r.Session().Closed(s.closed)
}

// has reports whether the plugin has hooks for any of the events.
func (s *session) has(events ...string) bool {
	return slices.ContainsFunc(s.part.hooks, func(h *hook) bool { return slices.Contains(events, h.Event) })
}

// hasBegun reports whether the hooks for the start of the session have run.
func (s *session) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// begin records that the hooks for the start of the session have run.
func (s *session) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
}

// remember keeps the conversation of a turn for the transcript. Hooks of tool calls do not see what their turn has added.
func (s *session) remember(turn protocol.TurnID, messages []protocol.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.talkOf, s.talk = turn, messages
}

// conversation returns what is known of the conversation at an event; nil: nothing.
func (s *session) conversation(in input) []protocol.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case in.TurnID != "" && in.TurnID == s.talkOf:
		return s.talk
	case in.view != nil:
		return in.view.Messages()
	}
	return nil
}

// note stores texts for the model until the next checkpoint of a turn, without duplicates, and a
// reason to end the turn there. The first reason wins. Notes of an earlier turn are dropped.
func (s *session) note(turn protocol.TurnID, texts []string, halted string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != turn {
		s.turn, s.pending, s.halted = turn, nil, ""
	}
	for _, text := range texts {
		if !slices.Contains(s.pending, text) {
			s.pending = append(s.pending, text)
		}
	}
	if s.halted == "" {
		s.halted = halted
	}
}

// noted returns and removes the notes of a turn, so that each text reaches the model once.
func (s *session) noted(turn protocol.TurnID) (texts []string, halted string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != turn {
		return nil, ""
	}
	texts, halted = s.pending, s.halted
	s.pending, s.halted = nil, ""
	return texts, halted
}

// tell returns a directive that adds texts of hooks to the conversation as a user message. The
// first line names the plugin and the event.
func (s *session) tell(event string, texts []string) []plugin.Directive {
	if len(texts) == 0 {
		return nil
	}
	content := "[From a hook of the plugin " + s.part.config.ID + ", " + event + "]\n" + strings.Join(texts, "\n\n")
	return []plugin.Directive{plugin.Enqueue(plugin.Message{Role: protocol.RoleUser, Content: content})}
}

// announce returns directives that show people the messages of hooks and their ignored failures.
func (s *session) announce(event string, v *verdict) []plugin.Directive {
	var events []plugin.RuntimeEvent
	for _, text := range v.messages {
		events = append(events, plugin.RuntimeEvent{Kind: "status", Key: "hook_message", Label: event, Detail: text})
	}
	for _, text := range v.failed {
		events = append(events, plugin.RuntimeEvent{Kind: "status", Key: "hook_failed", Label: event, Detail: text})
	}
	if len(events) == 0 {
		return nil
	}
	return []plugin.Directive{plugin.Tell(events...)}
}

// remark is announce with one more text, for a decision of a hook that has no effect. People should
// know why the hook was not obeyed.
func (s *session) remark(event string, v *verdict, text string) []plugin.Directive {
	return append(s.announce(event, v), plugin.Tell(plugin.RuntimeEvent{Kind: "status", Key: "hook_without_effect", Label: event, Detail: text}))
}

// view returns the view of an event, or one from the host if the event has none.
func view(ctx context.Context, ofEvent *plugin.View, host plugin.Capabilities) *plugin.View {
	if ofEvent != nil {
		return ofEvent
	}
	return look(ctx, host)
}
