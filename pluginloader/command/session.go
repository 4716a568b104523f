package command

import (
	"context"
	"slices"
	"strings"
	"sync"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// session is the plugin's hooks in one session.
type session struct {
	part  *Part
	build plugin.BuildContext

	mu      sync.Mutex
	begun   bool // hooks of its beginning were asked
	turn    protocol.TurnID
	pending []string // of the turn: what the model is told at its next checkpoint
	halted  string   // of the turn: why it is to end there
}

// compactPriority has hooks asked before anybody makes a summary.
const compactPriority = 1_000_000

// register contributes at the slots at which there are hooks.
func (s *session) register(r *plugin.Registrar) {
	if s.has("SessionStart", "SubagentStart", "UserPromptSubmit", "SessionEnd") {
		r.Turn().Before(s.beforeTurn)
	}
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
	if s.has("SessionEnd") {
		r.Session().Closed(s.closed)
	}
}

func (s *session) has(events ...string) bool {
	return slices.ContainsFunc(s.part.hooks, func(h *hook) bool { return slices.Contains(events, h.Event) })
}

// hasBegun tells whether the hooks of the session's beginning were asked.
func (s *session) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

func (s *session) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
}

// note keeps what the model is told at the next checkpoint of a turn, each text once, and what the turn ends with there.
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

// noted takes what was kept for a turn.
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

// tell lets the model know what hooks say.
func (s *session) tell(event string, texts []string) []plugin.Directive {
	if len(texts) == 0 {
		return nil
	}
	content := "[From a hook of the plugin " + s.part.config.ID + ", " + event + "]\n" + strings.Join(texts, "\n\n")
	return []plugin.Directive{plugin.Enqueue(plugin.Message{Role: protocol.RoleUser, Content: content})}
}

// announce tells people what hooks have for them, and which have failed.
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

// remark is announce with one more text, on what a hook wanted and could not have.
func (s *session) remark(event string, v *verdict, text string) []plugin.Directive {
	return append(s.announce(event, v), plugin.Tell(plugin.RuntimeEvent{Kind: "status", Key: "hook_without_effect", Label: event, Detail: text}))
}

// view is the view that is given, or else a look at the session.
func view(ctx context.Context, given *plugin.View, host plugin.Capabilities) *plugin.View {
	if given != nil {
		return given
	}
	return look(ctx, host)
}
