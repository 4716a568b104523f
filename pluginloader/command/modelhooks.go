package command

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// ErrHalted means that a hook ended the turn. The error that wraps it contains the reason.
var ErrHalted = errors.New("stopped by a hook")

// endPatience is the time limit for all hooks at the end of a session together. The engine cannot
// wait longer for a session that has to leave memory.
const endPatience = 5 * time.Second

// beforeModel runs hooks before a model call. They may add text to the prompt or end the turn. The
// text is part of that model call only and is not stored in history.
func (s *session) beforeModel(ctx context.Context, cv *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
	v, err := s.ask(ctx, question{input: s.common("PreModelRequest", "", view(ctx, cv.View, cv.Host))})
	switch {
	case err != nil:
		return pc, err
	case v.strength == halt:
		return pc, errors.Join(ErrHalted, errors.New(v.reason))
	case len(v.contexts) > 0:
		pc.Prompts = append(pc.Prompts, plugin.Prompt{Slot: plugin.SlotRuntimeContext, Content: strings.Join(v.contexts, "\n\n")})
	}
	return pc, nil
}

// afterModel reports a reply of the model to hooks. They cannot change it; they can only show
// messages to people.
func (s *session) afterModel(ctx context.Context, r plugin.Response) (plugin.Response, error) {
	in := s.common("PostModelRequest", "", nil)
	in.Last = new(textOf(protocol.RoleAssistant, []protocol.Message{{Role: protocol.RoleAssistant, Parts: r.Parts}}))
	v, err := s.ask(ctx, question{input: in})
	if err != nil {
		return r, err
	}
	for _, d := range s.announce(in.Event, v) {
		r.Events = append(r.Events, d.Events...)
	}
	return r, nil
}

// beforeCompaction runs hooks before a compaction, with the highest priority. They may prevent it
// but never write the summary, so it returns no nodes and the next compactor runs.
func (s *session) beforeCompaction(ctx context.Context, req *plugin.CompactRequest) ([]protocol.NodeBody, error) {
	in := s.common("PreCompact", "", view(ctx, req.View, req.Host))
	in.Trigger, in.Instructions = "manual", new(req.Instructions)
	if req.Unasked {
		in.Trigger = "auto"
	}
	v, err := s.ask(ctx, question{input: in, subject: in.Trigger})
	if err == nil && v.strength >= deny {
		err = errors.Join(ErrHalted, errors.New(v.reason))
	}
	return nil, err
}

// configChanged reports changed settings of the session to hooks. They run after the change was
// stored and cannot prevent it.
func (s *session) configChanged(ctx context.Context, event *plugin.LifecycleEvent) error {
	if event.Kind != plugin.SessionConfigChanged {
		return nil
	}
	in := s.common("ConfigChange", "", look(ctx, event.Host))
	in.Source = "session"
	_, err := s.ask(ctx, question{input: in})
	return err
}

// closed reports to hooks that the session leaves memory, unless no turn has started in it. A
// failure only goes to the log. All hooks together get endPatience, because the engine waits for
// them.
func (s *session) closed() error {
	defer func() {
		if err := s.transcript.remove(); err != nil {
			s.part.config.Output.Add(slog.LevelWarn, "the transcript for hooks cannot be removed: "+err.Error())
		}
	}()
	if !s.hasBegun() || !s.has("SessionEnd") {
		return nil
	}
	// No caller's context fits: the session is closed to free memory, or because lashd stops.
	ctx, cancel := context.WithTimeoutCause(context.Background(), endPatience, errTimeout)
	defer cancel()
	in := s.common("SessionEnd", "", nil)
	in.Reason = "other"
	_, err := s.ask(ctx, question{input: in, subject: in.Reason})
	if err != nil {
		s.part.config.Output.Add(slog.LevelWarn, "SessionEnd: "+err.Error())
	}
	return nil
}
