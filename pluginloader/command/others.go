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

// ErrHalted means that a hook wants the turn to end; its reason is in the error that wraps it.
var ErrHalted = errors.New("a hook has ended it")

// endPatience is how long all hooks of a session's end get together.
const endPatience = 5 * time.Second

// beforeModel lets hooks add to the prompt of a model call.
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

// afterModel tells hooks of a reply. They change nothing of it.
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

// beforeCompaction asks hooks before a summary is made. They make none.
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

// configChanged tells hooks of settings.
func (s *session) configChanged(ctx context.Context, event *plugin.LifecycleEvent) error {
	if event.Kind != plugin.SessionConfigChanged {
		return nil
	}
	in := s.common("ConfigChange", "", look(ctx, event.Host))
	in.Source = "session"
	_, err := s.ask(ctx, question{input: in})
	return err
}

// closed tells hooks that the session leaves memory, if a turn has begun in it.
func (s *session) closed() error {
	if !s.hasBegun() {
		return nil
	}
	// Nobody's context lasts here: the session is closed by whoever needs its memory, or by the end of lashd.
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
