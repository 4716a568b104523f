package engine

import (
	"context"
	"errors"
	"time"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// BringServers connects the MCP servers that a client brings to a session which it has just created. Those that somebody has
// brought meanwhile stay.
func (e *Engine) BringServers(ctx context.Context, client protocol.ClientID, id protocol.SessionID, servers protocol.MCPServers) error {
	g, err := e.connect(ctx, client, id, servers)
	if err != nil {
		return err
	}
	defer g.dismiss()
	return e.welcome(ctx, id, g)
}

// checkGuests refuses servers that cannot be in a session.
func (e *Engine) checkGuests(ctx context.Context, p *protocol.SessionOverlayParams) error {
	if len(p.MCPServers) == 0 {
		return nil
	}
	row, err := e.store.Session(ctx, p.SessionID)
	if err != nil {
		return err
	}
	return e.checkServers(ctx, row.Cwd, p.MCPServers)
}

// welcome gives servers to a session that has none.
func (e *Engine) welcome(ctx context.Context, id protocol.SessionID, g *guests) error {
	if g == nil {
		return nil
	}
	_, err := do(ctx, e, id, func(ctx context.Context, st *state) (struct{}, error) {
		if st.guests != nil {
			return struct{}{}, nil
		}
		return struct{}{}, st.receive(ctx, g)
	})
	return err
}

// receive puts servers in the place of those that are there. If the session's plugins are not open, their tools come with these.
func (st *state) receive(ctx context.Context, g *guests) error {
	if st.tools != nil {
		_, err := st.setOverlay(ctx, st.tools, st.overlay, g, receipt{})
		return err
	}
	if err := g.take(); err != nil {
		return err
	}
	st.keepGuests(g)
	return nil
}

// keepGuests lets those before go, and watches whose they are.
func (st *state) keepGuests(g *guests) {
	st.guests.leave()
	st.guests = g
	if g == nil {
		return
	}
	away, ctx := st.eng.presence.watch(g.client), context.WithoutCancel(st.ctx)
	st.eng.actors.Go(func() {
		defer away.stop()
		select {
		case <-away.gone:
			st.eng.part(ctx, st.id, g)
		case <-g.over:
		case <-st.eng.done():
		}
	})
}

// part takes servers out of a session, because their client is gone. If that cannot be stored their calls fail until it can.
func (e *Engine) part(ctx context.Context, id protocol.SessionID, g *guests) {
	g.leave()
	e.rid(ctx, id, "tools", func(ctx context.Context, st *state) error {
		if st.guests != g {
			return nil
		}
		return st.receive(ctx, nil)
	})
}

// rid has a session let go of what a client that is gone has left in it. If that cannot be stored it is tried again.
func (e *Engine) rid(ctx context.Context, id protocol.SessionID, what string, let func(context.Context, *state) error) {
	for {
		_, err := do(ctx, e, id, func(ctx context.Context, st *state) (struct{}, error) { return struct{}{}, let(ctx, st) })
		if err == nil || isGone(err) || errors.Is(err, ErrShuttingDown) {
			return
		}
		e.Log.Warn("a session keeps "+what+" of a client that is gone", "session", id, "error", err)
		select {
		case <-time.After(spaceCheck):
		case <-e.done():
			return
		}
	}
}

// exchange registers the tools of servers in the place of those that are there.
func (st *state) exchange(r *tool.Registry, g *guests) error {
	old := st.guests
	_, err := meanwhile(st, func(context.Context) (struct{}, error) {
		old.unseat(r)
		g.seat(r, st.leftOut)
		return struct{}{}, nil
	})
	return err
}

// leftOut tells of a server whose tools a session does not have.
func (s *session) leftOut(server string, why error) {
	s.eng.Log.Warn("tools of an MCP server that a client has brought are left out", "session", s.id, "server", server, "error", why)
}

// complain tells a session's observers of something that went wrong.
func (e *Engine) complain(ctx context.Context, id protocol.SessionID, issue protocol.Issue) error {
	_, err := do(ctx, e, id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.tell(ctx, complaint("", issue))
	})
	return err
}
