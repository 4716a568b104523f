package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// create commits a new session, and answers with what was created.
func (e *Engine) create(ctx context.Context, c *persistence.Commit, rc receipt) (*protocol.SessionNewResult, error) {
	result := &protocol.SessionNewResult{SessionID: c.Session, Session: protocol.Session{
		ID: c.Session, Title: c.Create.Title, Cwd: c.Create.Cwd, State: protocol.SessionIdle, Config: c.Create.Config,
		Relation: c.Create.Relation, Authority: c.Create.Authority, CreatedAtMs: c.AtMs, UpdatedAtMs: c.AtMs, Seq: protocol.Seq(len(c.Events)),
	}}
	result.Seq = result.Session.Seq
	if c.Receipt = rc.with(result); c.Receipt != nil {
		c.Receipt.ResultAt = func(head protocol.Head) []byte {
			result.Session.Head = head
			return encode(result)
		}
	}
	res, err := e.store.Commit(ctx, c)
	if err != nil {
		return nil, err
	}
	if res.Replayed {
		return nil, errReplayed
	}
	result.Session.Head = res.Head
	e.postSession(result.Session)
	return result, nil
}

// defaults are the settings of a session that begins with nothing and asks for nothing.
func (e *Engine) defaults() (protocol.Config, error) {
	cfg := e.Defaults
	model, err := e.model("")
	cfg.Model = model.Spec
	return cfg, err
}

// configFor is a session's settings with what a request wants otherwise.
func (e *Engine) configFor(cfg protocol.Config, p *protocol.SessionNewParams) (protocol.Config, error) {
	if p.Driver != "" {
		cfg.Driver = p.Driver
	}
	if !slices.Contains(e.Plugins.Drivers(), cfg.Driver) {
		return cfg, bad("/driver", "must be one of %v", e.Plugins.Drivers())
	}
	return e.changed(cfg, &protocol.SessionConfigureParams{
		Model: p.Model, Prompt: p.Prompt, Budget: p.Budget, Approval: p.Approval, Generation: p.Generation, GenerationMode: p.GenerationMode,
		Options: p.Options, Unknown: p.Unknown, Drain: p.Drain,
	})
}

func checkConfig(cfg protocol.Config) error {
	if cfg.Budget.Iterations == 0 || cfg.Budget.Iterations < -1 {
		return bad("/budget/iterations", "must be a positive number, or -1 for no bound")
	}
	if cfg.Budget.NoProgress < 0 {
		return bad("/budget/noProgress", "must not be negative")
	}
	modes := []protocol.ApprovalMode{protocol.ApproveAllow, protocol.ApproveAsk, protocol.ApproveDeny}
	if cfg.Approval.Mode != "" && !slices.Contains(modes, cfg.Approval.Mode) {
		return bad("/approval/mode", "must be one of %v", modes)
	}
	if d := cfg.Approval.Default; d != "" && d != protocol.ApproveAllow && d != protocol.ApproveDeny {
		return bad("/approval/default", "must be allow or deny")
	}
	if err := checkWait("/approval/deadlineMs", cfg.Approval.DeadlineMs); err != nil {
		return err
	}
	for i, r := range cfg.Approval.Rules {
		if _, err := filepath.Match(r.Tool, ""); err != nil || r.Tool == "" {
			return bad("/approval/rules/"+itoa(i)+"/tool", "must be a tool's name, or a pattern with *")
		}
		if !slices.Contains(modes, r.Action) {
			return bad("/approval/rules/"+itoa(i)+"/action", "must be one of %v", modes)
		}
	}
	if d := cfg.Unknown.DeadlineMs; d != nil {
		if err := checkWait("/unknownOutcome/deadlineMs", *d); err != nil {
			return err
		}
	}
	if how := []protocol.DrainPolicy{"", protocol.DrainOne, protocol.DrainMerge}; !slices.Contains(how, cfg.Drain) {
		return bad("/drain", "must be one of %v", how[1:])
	}
	return checkGeneration(cfg.Generation)
}

func checkCwd(cwd string) (string, error) {
	if !filepath.IsAbs(cwd) {
		return "", bad("/cwd", "must be an absolute path, not %.200q", cwd)
	}
	info, err := os.Stat(cwd)
	if err != nil || !info.IsDir() {
		return "", bad("/cwd", "%.200q is not a directory", cwd)
	}
	return filepath.Clean(cwd), nil
}

// Sessions lists sessions, newest first.
func (e *Engine) Sessions(ctx context.Context, p *protocol.SessionListParams) (*protocol.SessionListResult, error) {
	at, err := parseCursor(p.Cursor, sessionPages, 2)
	if err != nil {
		return nil, err
	}
	limit, err := pageSize(p.Limit, 50, 200)
	if err != nil {
		return nil, err
	}
	rows, err := e.store.Sessions(ctx, persistence.SessionQuery{
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
		result.NextCursor = cursor(sessionPages, rows[limit-1].UpdatedAtMs, rows[limit-1].Key)
	}
	return result, e.addStates(ctx, result.Data)
}

// addStates adds what stored sessions are doing now. Of those that are not in memory, or only just come there, the store tells: after a
// restart their turns go on as soon as they can.
func (e *Engine) addStates(ctx context.Context, sessions []protocol.Session) error {
	var stored map[protocol.SessionID]protocol.SessionState
	for i := range sessions {
		s := &sessions[i]
		if s.State = e.doing(s.ID); s.State != "" {
			continue
		}
		if stored == nil {
			var err error
			if stored, err = e.storedStates(ctx); err != nil {
				return err
			}
		}
		s.State = cmp.Or(stored[s.ID], protocol.SessionIdle)
	}
	return nil
}

// doing is what a session in memory does; empty: that is not known here.
func (e *Engine) doing(id protocol.SessionID) protocol.SessionState {
	e.mu.Lock()
	s := e.sessions[id]
	e.mu.Unlock()
	if s == nil {
		return ""
	}
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	return s.doing
}

// storedStates are those of sessions that are not idle.
func (e *Engine) storedStates(ctx context.Context) (map[protocol.SessionID]protocol.SessionState, error) {
	unfinished, err := e.store.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	open, err := e.store.OpenDecisions(ctx, 0)
	if err != nil {
		return nil, err
	}
	states := map[protocol.SessionID]protocol.SessionState{}
	for _, id := range unfinished {
		states[id] = protocol.SessionRunning
	}
	for _, d := range open {
		if forPerson(d) {
			states[d.SessionID] = protocol.SessionRequiresAction
		}
	}
	return states, nil
}

// ReadSession reads a page of what a person sees of a session, backwards.
func (e *Engine) ReadSession(ctx context.Context, p *protocol.SessionReadParams) (*protocol.SessionReadResult, error) {
	row, err := e.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	limit, err := pageSize(p.Limit, 200, 500)
	if err != nil {
		return nil, err
	}
	nodes, next, err := e.page(ctx, row, p.Cursor, limit)
	if err != nil {
		return nil, err
	}
	one := []protocol.Session{row.Session}
	if err := e.addStates(ctx, one); err != nil {
		return nil, err
	}
	return &protocol.SessionReadResult{Session: one[0], Data: list(graph.Items(nodes)), NextCursor: next}, nil
}

// page reads nodes of the active path before a cursor, in order. A page never begins between a tool call and its
// result, so that the call is shown with it.
func (e *Engine) page(ctx context.Context, row persistence.Session, at string, limit int) ([]protocol.Node, string, error) {
	from := persistence.Cursor{Branch: row.Branch, Generation: row.Head.Generation}
	if at != "" {
		c, err := parseCursor(at, nodePages(row.Key), 2)
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
	return persistence.Reversed(nodes), cursor(nodePages(row.Key), next.Branch, next.Generation), nil
}

func isResults(n protocol.Node) bool {
	return n.Message != nil && len(n.Message.Parts) > 0 && n.Message.Parts[0].Kind == protocol.PartToolResult
}

// WaitIdle waits until a session runs and queues nothing.
func (e *Engine) WaitIdle(ctx context.Context, p *protocol.SessionWaitParams) (*protocol.SessionWaitResult, error) {
	if err := checkWait("/timeoutMs", p.TimeoutMs); err != nil {
		return nil, err
	}
	timeout, stop := after(p.TimeoutMs)
	defer stop()
	for late := false; ; {
		again := e.settled.Next()
		result, err := aside(ctx, e, p.SessionID, func(_ context.Context, st *state) (*protocol.SessionWaitResult, error) {
			return &protocol.SessionWaitResult{State: st.public().State, Seq: st.row.Seq}, nil
		})
		if err != nil || late || result.State == protocol.SessionIdle {
			return result, err
		}
		select {
		case <-again:
		case <-timeout:
			late = true // how it is by now is told
		case <-e.done():
			return nil, ErrShuttingDown
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// DeleteSession removes a session for ever. A running turn is stopped; its id is never used again. Its tasks go to the session
// that it works for, or are stopped if there is none, or if they say so. To delete what is deleted is no error.
func (e *Engine) DeleteSession(ctx context.Context, p *protocol.SessionMutationParams) (*protocol.SeqResult, error) {
	return single(ctx, e, "session/delete", p.Key(), p, func(rc receipt) (*protocol.SeqResult, error) {
		return e.deleteSession(ctx, p.SessionID, rc)
	})
}

func (e *Engine) deleteSession(ctx context.Context, id protocol.SessionID, rc receipt) (*protocol.SeqResult, error) {
	result := &protocol.SeqResult{}
	gone := func(ctx context.Context) error { return e.commitDeleted(ctx, id, rc.with(result)) }
	tasks, err := e.leaveTasks(ctx, id)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // what goes with the session has to go, too, once it is deleted
	loaded := false
	_, err = aside(ctx, e, id, func(ctx context.Context, st *state) (struct{}, error) {
		loaded = true
		tell := st.withdrawn()
		if err := gone(ctx); err != nil {
			return struct{}{}, err
		}
		tell()
		st.broken = persistence.ErrDeleted
		for _, t := range st.turns {
			st.eng.waits.end(t.ID, nil)
		}
		e.settled.Notify()
		return struct{}{}, nil
	})
	if err != nil && !loaded && !errors.Is(err, ErrShuttingDown) && !errors.Is(err, ErrReloaded) {
		err = gone(ctx) // what cannot be loaded can be deleted
	}
	switch {
	case errors.Is(err, persistence.ErrDeleted):
		return result, nil
	case err != nil:
		return nil, err
	}
	e.endWork(ctx, id, tasks)
	e.forgetTriggers(ctx, id)
	e.postDeleted(id)
	return result, nil
}

// commitDeleted deletes a session in the store. If it is deleted, only the receipt is new.
func (e *Engine) commitDeleted(ctx context.Context, id protocol.SessionID, rc *persistence.Receipt) error {
	res, err := e.store.Commit(ctx, &persistence.Commit{Session: id, Delete: true, Receipt: rc, AtMs: now()})
	if errors.Is(err, persistence.ErrDeleted) && rc != nil {
		var failed error
		if res, failed = e.store.Commit(ctx, &persistence.Commit{Receipt: rc, AtMs: now()}); failed != nil {
			err = failed
		}
	}
	if res.Replayed {
		return errReplayed
	}
	return err
}

// CloseSession takes an idle session out of memory. It is loaded again when somebody uses it. One that is watched
// stays, and so does one at whose tasks plugins work. What becomes of its tasks is for them to say.
func (e *Engine) CloseSession(ctx context.Context, p *protocol.SessionMutationParams) (*protocol.SeqResult, error) {
	idle := func(_ context.Context, st *state) (struct{}, error) { return struct{}{}, st.checkIdle() }
	if _, err := do(ctx, e, p.SessionID, idle); err != nil {
		return nil, err
	}
	if err := e.bequeath(ctx, p.SessionID, transferred); err != nil {
		return nil, err
	}
	return do(ctx, e, p.SessionID, func(ctx context.Context, st *state) (*protocol.SeqResult, error) {
		if err := st.checkIdle(); err != nil {
			return nil, err
		}
		if err := st.closeTasks(ctx); err != nil {
			return nil, err
		}
		if !st.feed.Watched() && st.working.Load() == 0 {
			st.broken = errClosed
		}
		return &protocol.SeqResult{Seq: st.row.Seq}, nil
	})
}

// checkIdle refuses to close a session in which something goes on.
func (st *state) checkIdle() error {
	if len(st.turns) > 0 || st.inUse() {
		return ErrSessionInUse
	}
	return nil
}

var errClosed = errors.New("closed")
