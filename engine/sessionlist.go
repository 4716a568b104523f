package engine

import (
	"cmp"
	"context"

	"lashd/engine/decision"
	"lashd/engine/graph"
	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Sessions is the API of sessions: create, list, read, change, attach to, close and delete them.
type Sessions struct{ eng *Engine }

// List lists sessions, newest first.
func (ss *Sessions) List(ctx context.Context, p *protocol.SessionListParams) (*protocol.SessionListResult, error) {
	at, err := param.ParseCursor(p.Cursor, param.SessionPages, 2)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 50, 200)
	if err != nil {
		return nil, err
	}
	rows, err := ss.eng.store.Sessions(ctx, persistence.SessionQuery{
		Archived: p.Archived, Children: p.Children, Cwd: p.Cwd, BeforeMs: at[0], BeforeKey: at[1], Limit: limit,
	})
	if err != nil {
		return nil, err
	}
	result := &protocol.SessionListResult{Data: []protocol.Session{}}
	for _, r := range rows {
		result.Data = append(result.Data, r.Session)
	}
	if len(rows) == limit {
		result.NextCursor = param.Cursor(param.SessionPages, rows[limit-1].UpdatedAtMs, rows[limit-1].Key)
	}
	return result, ss.addStates(ctx, result.Data)
}

// addStates adds what stored sessions are doing now. Of those that are not in memory, or only just come there, the store tells: after a
// restart their turns go on as soon as they can.
func (ss *Sessions) addStates(ctx context.Context, sessions []protocol.Session) error {
	var stored map[protocol.SessionID]protocol.SessionState
	for i := range sessions {
		s := &sessions[i]
		if s.State = ss.memoryState(s.ID); s.State != "" {
			continue
		}
		if stored == nil {
			var err error
			if stored, err = ss.storedStates(ctx); err != nil {
				return err
			}
		}
		s.State = cmp.Or(stored[s.ID], protocol.SessionIdle)
	}
	return nil
}

// doing is what a session in memory does; empty: that is not known here.
func (ss *Sessions) memoryState(id protocol.SessionID) protocol.SessionState {
	ss.eng.mu.Lock()
	s := ss.eng.sessions[id]
	ss.eng.mu.Unlock()
	if s == nil {
		return ""
	}
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	return s.activity
}

// storedStates are those of sessions that are not idle.
func (ss *Sessions) storedStates(ctx context.Context) (map[protocol.SessionID]protocol.SessionState, error) {
	unfinished, err := ss.eng.store.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	open, err := ss.eng.store.OpenDecisions(ctx, 0)
	if err != nil {
		return nil, err
	}
	states := map[protocol.SessionID]protocol.SessionState{}
	for _, id := range unfinished {
		states[id] = protocol.SessionRunning
	}
	for _, d := range open {
		if decision.ForPerson(d) {
			states[d.SessionID] = protocol.SessionRequiresAction
		}
	}
	return states, nil
}

// Read reads a page of what a person sees of a session, backwards.
func (ss *Sessions) Read(ctx context.Context, p *protocol.SessionReadParams) (*protocol.SessionReadResult, error) {
	row, err := ss.eng.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 200, 500)
	if err != nil {
		return nil, err
	}
	nodes, next, err := ss.eng.page(ctx, row, p.Cursor, limit)
	if err != nil {
		return nil, err
	}
	one := []protocol.Session{row.Session}
	if err := ss.addStates(ctx, one); err != nil {
		return nil, err
	}
	return &protocol.SessionReadResult{Session: one[0], Data: list(graph.Items(nodes)), NextCursor: next}, nil
}

// page reads nodes of the active path before a cursor, in order. A page never begins between a tool call and its
// result, so that the call is shown with it.
func (e *Engine) page(ctx context.Context, row persistence.Session, at string, limit int) ([]protocol.Node, string, error) {
	from := persistence.Cursor{Branch: row.Branch, Generation: row.Head.Generation}
	if at != "" {
		c, err := param.ParseCursor(at, param.NodePages(row.Key), 2)
		if err != nil {
			return nil, "", err
		}
		from = persistence.Cursor{Branch: c[0], Generation: c[1]}
	}
	nodes, next, err := e.store.Path(ctx, from, limit)
	if err != nil {
		return nil, "", err
	}
	for !next.Done && len(nodes) > 0 && isResults(nodes[len(nodes)-1]) {
		var more []protocol.Node
		if more, next, err = e.store.Path(ctx, next, 1); err != nil {
			return nil, "", err
		}
		nodes = append(nodes, more...)
	}
	if next.Done {
		return persistence.Reversed(nodes), "", nil
	}
	return persistence.Reversed(nodes), param.Cursor(param.NodePages(row.Key), next.Branch, next.Generation), nil
}

func isResults(n protocol.Node) bool {
	return n.Message != nil && len(n.Message.Parts) > 0 && n.Message.Parts[0].Kind == protocol.PartToolResult
}
