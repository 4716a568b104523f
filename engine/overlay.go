package engine

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// overlay is what a client adds to a session: tools that the client itself runs, and a text for the prompt.
type overlay struct {
	ClientID    protocol.ClientID     `json:"clientId,omitempty"`
	WithoutBase bool                  `json:"withoutBase,omitempty"`
	Tools       []protocol.ClientTool `json:"tools,omitempty"`
	Prompt      string                `json:"prompt,omitempty"`
}

// SetOverlay replaces what a client adds to a session. Setting what is set already changes nothing.
func (e *Engine) SetOverlay(ctx context.Context, client protocol.ClientID, p *protocol.SessionOverlayParams) (*protocol.SessionOverlayResult, error) {
	if err := checkOverlay(p); err != nil {
		return nil, err
	}
	return mutate(ctx, e, p.SessionID, "session/setOverlay", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SessionOverlayResult, error) {
		t, err := st.openTools(st.row.Config)
		if err != nil {
			return nil, err
		}
		next := overlay{ClientID: client, Tools: p.Tools, Prompt: p.Prompt, WithoutBase: p.IncludeBaseTools != nil && !*p.IncludeBaseTools}
		if bytes.Equal(encode(next), encode(st.overlay)) {
			return &protocol.SessionOverlayResult{Tools: t.composer.Base().State(), Seq: st.row.Seq}, nil
		}
		return st.setOverlay(ctx, t, next, rc)
	})
}

func checkOverlay(p *protocol.SessionOverlayParams) error {
	if len(p.Tools) > maxClientTools {
		return bad("/tools", "has %d tools, at most %d", len(p.Tools), maxClientTools)
	}
	seen := map[string]bool{}
	for i, t := range p.Tools {
		pointer := "/tools/" + itoa(i)
		if t.Name == "" || len(t.Name) > 64 || strings.ContainsFunc(t.Name, func(c rune) bool { return !isIDRune(c) }) {
			return bad(pointer+"/name", "must have 1 to 64 letters, digits, - and _")
		}
		if seen[t.Name] {
			return bad(pointer+"/name", "%q is there twice", t.Name)
		}
		seen[t.Name] = true
		if err := tool.CheckSchema(t.Input); err != nil {
			return bad(pointer+"/input", "%v", err)
		}
		if t.Replay != "" && t.Replay != protocol.ReplayNever && t.Replay != protocol.ReplaySafe && t.Replay != protocol.ReplayIdempotent {
			return bad(pointer+"/replay", "must be never, safe or idempotent")
		}
		if err := checkWait(pointer+"/deadlineMs", t.DeadlineMs); err != nil {
			return err
		}
	}
	return nil
}

// setOverlay commits an overlay with the catalog that it makes; if that fails, everything is as before.
func (st *state) setOverlay(ctx context.Context, t *toolbox, next overlay, rc receipt) (*protocol.SessionOverlayResult, error) {
	tools := t.composer.Base().State()
	result := &protocol.SessionOverlayResult{Tools: tools, Seq: st.row.Seq + 1}
	c := &persistence.Commit{Receipt: rc.with(result), Component: []persistence.Component{{Name: componentOverlay, Body: encode(next)}}}
	err := t.overlay(next)
	if err == nil {
		err = st.rebuild(t)
	}
	if err == nil {
		_, err = st.commit(ctx, c, logEvent{Event: protocol.Event{Type: protocol.EventToolsChanged, Tools: &tools}})
	}
	if err != nil {
		return nil, errors.Join(err, t.overlay(st.overlay), st.rebuild(t))
	}
	st.overlay = next
	return result, nil
}
