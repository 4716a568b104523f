package engine

import (
	"cmp"
	"context"

	"lashd/engine/decision"
	"lashd/engine/fact"
	"lashd/engine/graph"
	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Sessions is the API of sessions: create, list, read, change, attach to, close and delete them. It
// has no state of its own. Its methods may be called from any goroutine but an actor's, because
// they wait for actors.
type Sessions struct{ eng *Engine }

// List lists sessions, most recently updated first, in pages of 50 by default and 200 at most. A
// session that is updated between two pages moves to the front, so a client can miss it.
func (ss *Sessions) List(ctx context.Context, p *protocol.SessionListParams) (*protocol.SessionListResult, error) {
	at, err := param.ParseCursor(p.Cursor, param.SessionPages, 2)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 50, 200)
	if err != nil {
		return nil, err
	}
	q := persistence.SessionQuery{Archived: p.Archived, Children: p.Children, Cwd: param.Where(p.Cwd), BeforeMs: at[0], BeforeKey: at[1], Limit: limit}
	rows, err := ss.eng.store.Sessions(ctx, q)
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

// addStates sets the current state of stored sessions. For a session that is not in memory, or has
// only begun to load, it takes the state from the store: a turn that was interrupted by a restart
// counts as running, because it resumes by itself.
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

// memoryState returns the state of a session in memory, or an empty state if it is not in memory or
// not loaded yet. It does not wait for the actor.
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

// storedStates maps each stored session that is not idle to its state: running if it has an
// unfinished turn, and requiresAction if a decision waits for a person.
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

// Read returns a page of a session's items as people see them, newest page first, in pages of 200
// nodes by default and 500 at most. It reads stored history only: items of a running turn are
// missing until the turn ends.
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
	facts, err := fact.Read(ctx, ss.eng.store, row.Key)
	if err != nil {
		return nil, err
	}
	language, _ := fact.CodeLanguage.Of(facts)
	return &protocol.SessionReadResult{Session: one[0], CodeLanguage: language, Data: list(graph.Items(nodes)), NextCursor: next}, nil
}

// page reads up to limit nodes of the active path before a cursor and returns them in order. An
// empty cursor starts at the leaf. A cursor names a place on a branch, so later pages stay the same
// even if the session is rewound between them.
//
// It reads more nodes rather than begin with a tool result, so that each call is shown with its
// result. The returned cursor is empty after the last page.
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
	for !next.Done && len(nodes) > 0 && graph.IsResults(&nodes[len(nodes)-1]) {
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
