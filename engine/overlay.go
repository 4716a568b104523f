package engine

import (
	"bytes"
	"cmp"
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
	Passing     bool                  `json:"passing,omitempty"` // it goes with its client
}

// nothing tells whether the session is as it would be without any client.
func (o overlay) nothing() bool { return len(o.Tools) == 0 && o.Prompt == "" && !o.WithoutBase }

// othersVisit tells whether another client has added something that goes with it: then that is not for this one to take away.
func (st *state) othersVisit(client protocol.ClientID) bool {
	return st.overlay.Passing && st.overlay.ClientID != client || st.guests != nil && st.guests.client != client
}

// SetOverlay replaces what a client adds to a session. Setting what is set already changes nothing, unless there are MCP servers: these
// are brought anew. A client that adds nothing leaves what another one adds while it is there. What stands in servers is not stored, so a
// repetition that has other ones is the same request.
func (e *Engine) SetOverlay(ctx context.Context, client protocol.ClientID, p *protocol.SessionOverlayParams) (*protocol.SessionOverlayResult, error) {
	if err := cmp.Or(checkOverlay(p), e.checkGuests(ctx, p)); err != nil {
		return nil, err
	}
	g, err := e.connect(ctx, client, p.SessionID, p.MCPServers)
	if err != nil {
		return nil, err
	}
	defer g.closeUnused()
	asked := *p
	asked.MCPServers = named(p.MCPServers)
	result, err := mutate(ctx, e, p.SessionID, "session/setOverlay", p.Key(), &asked, func(ctx context.Context, st *state, rc receipt) (*protocol.SessionOverlayResult, error) {
		t, err := st.openTools(st.row.Config)
		if err != nil {
			return nil, err
		}
		next := overlay{ClientID: client, Tools: p.Tools, Prompt: p.Prompt, WithoutBase: p.IncludeBaseTools != nil && !*p.IncludeBaseTools, Passing: p.WhileConnected}
		same := st.guests == nil && bytes.Equal(encode(next), encode(st.overlay))
		if g == nil && (same || next.nothing() && st.othersVisit(client)) {
			return &protocol.SessionOverlayResult{Tools: t.composer.Base().State(), Seq: st.row.Seq}, nil
		}
		return st.setOverlay(ctx, t, next, g, rc)
	})
	if err == nil && result.Duplicate {
		err = e.adoptServers(ctx, p.SessionID, g)
	}
	return result, err
}

func checkOverlay(p *protocol.SessionOverlayParams) error {
	if len(p.Tools) > maxClientTools {
		return bad("/tools", "has %d tools, at most %d", len(p.Tools), maxClientTools)
	}
	seen, ids := map[string]bool{}, map[string]bool{}
	for i, t := range p.Tools {
		pointer := "/tools/" + itoa(i)
		if t.Name == "" || len(t.Name) > 64 || strings.ContainsFunc(t.Name, func(c rune) bool { return !isIDRune(c) }) {
			return bad(pointer+"/name", "must have 1 to 64 letters, digits, - and _")
		}
		if seen[t.Name] {
			return bad(pointer+"/name", "%q is there twice", t.Name)
		}
		id := cmp.Or(string(t.ID), t.Name)
		if ids[id] {
			return bad(pointer+"/id", "%.200q occurs twice; a tool without an id has its name as id", id)
		}
		seen[t.Name], ids[id] = true, true
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

// setOverlay commits an overlay, and other servers, with the catalog that they make; if that fails, everything is as before.
func (st *state) setOverlay(ctx context.Context, t *pluginSet, next overlay, g *clientServers, rc receipt) (*protocol.SessionOverlayResult, error) {
	base, old := t.composer.Base(), st.guests
	before, generation := base.Checkpoint(), base.Generation()
	err := st.exchange(base, g)
	if err == nil {
		err = t.overlay(next, g)
	}
	if err == nil {
		err = st.rebuild(t)
	}
	tools := base.State()
	c := st.change(persistence.Commit{Component: []persistence.Component{{Name: componentOverlay, Body: encode(next)}}})
	if base.Generation() != generation {
		c.Component = append(c.Component, persistence.Component{Name: componentTools, Body: encode(tools)})
		c.Then(func() { st.storedTools = tools })
	}
	c.TellOf(protocol.Event{Type: protocol.EventToolsChanged, Tools: &tools})
	result := &protocol.SessionOverlayResult{Tools: tools, Seq: c.Seq()}
	c.Receipt = rc.with(result)
	if err == nil {
		err = g.take()
	}
	if err == nil {
		err = st.commit(ctx, c)
	}
	if err != nil {
		g.disconnect()
		base.Rollback(before)
		return nil, errors.Join(err, t.overlay(st.overlay, old), st.rebuild(t))
	}
	st.overlay = next
	st.watchOverlay()
	st.keepGuests(g)
	return result, nil
}

// watchOverlay sees to it that an overlay goes with its client, if it is to. The one before is not watched any more.
func (st *state) watchOverlay() {
	if st.overlayReplaced != nil {
		close(st.overlayReplaced)
		st.overlayReplaced = nil
	}
	if !st.overlay.Passing {
		return
	}
	over, ctx := make(chan struct{}), context.WithoutCancel(st.ctx)
	st.overlayReplaced = over
	away := st.eng.presence.watch(st.overlay.ClientID)
	st.eng.actors.Go(func() {
		defer away.stop()
		select {
		case <-away.gone:
			st.eng.dropOverlayLater(ctx, st.id, over)
		case <-over:
		case <-st.closed: // it is watched again once the session is loaded again
		case <-st.eng.done():
		}
	})
}

// dropOverlayLater takes an overlay out of a session, because its client is gone; over is closed once another one is there. If that cannot be
// stored it is tried again: until then, calls of its tools fail.
func (e *Engine) dropOverlayLater(ctx context.Context, id protocol.SessionID, over <-chan struct{}) {
	e.dropAddition(ctx, id, "an overlay", func(ctx context.Context, st *state) error { return st.dropOverlay(ctx, over) })
}

func (st *state) dropOverlay(ctx context.Context, over <-chan struct{}) error {
	select {
	case <-over:
		return nil
	default:
	}
	t, err := st.openTools(st.row.Config)
	if err != nil {
		return err
	}
	_, err = st.setOverlay(ctx, t, overlay{}, nil, receipt{}) // the servers that it came with go, too
	return err
}
