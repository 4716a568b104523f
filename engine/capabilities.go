package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"lashd/engine/authority"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// services implements the capabilities that hooks and tools of plugins get. It calls the engine's
// own API on behalf of one session, within what that session, its turn or its task may do. A method
// that names no session means that session. All methods may block and are safe for concurrent use.
type services struct {
	eng     *Engine
	session protocol.SessionID
	// turn is the turn whose hook calls; empty if the call belongs to no turn.
	turn protocol.TurnID
	// ceiling limits that turn or task, in addition to the session's own ceiling.
	ceiling *protocol.Ceiling
	// work is the running task that calls; nil if none does.
	work *work
	// tracer records trace entries of the plugin.
	tracer func(kind trace.Kind, body any)
}

// capabilities returns the capabilities of the session for hooks, without an additional ceiling.
func (h *hooks) capabilities() plugin.Capabilities { return h.capabilitiesFor(nil) }

// capabilitiesFor returns capabilities with an additional ceiling: that of a plugin or tool which
// asks; nil if it has none.
func (h *hooks) capabilitiesFor(asker *protocol.Ceiling) plugin.Capabilities {
	s := &services{
		eng: h.eng, session: h.session.id, turn: h.caller.turnID(), ceiling: authority.MeetAll(h.judge.ceiling, asker), tracer: h.trace.add,
	}
	return s.all()
}

// capabilities returns the capabilities of a session outside a turn, as lifecycle hooks and config
// mutators get them.
func (e *Engine) capabilities(id protocol.SessionID, tracer func(trace.Kind, any)) plugin.Capabilities {
	return (&services{eng: e, session: id, tracer: tracer}).all()
}

func (s *services) all() plugin.Capabilities {
	return plugin.Capabilities{State: s, Lifecycle: s, Graph: s, Models: s, Tasks: s, Monitors: monitorService{s}, Tracer: s}
}

// requester returns who a call to a service acts for, with its limits: those of the session's turn
// or task, a sandbox if ctx belongs to a sandboxed plugin, and plan mode if the session is in it.
func (s *services) requester(ctx context.Context) (*requester, error) {
	row, err := s.eng.store.Session(ctx, s.session)
	if err != nil {
		return nil, err
	}
	planning := authority.Planning(row.Config, row.Authority.Ceiling)
	by := &requester{session: s.session, ceiling: authority.MeetAll(s.ceiling, authority.InSandbox(ctx), planning), bound: authority.IsLoaded(ctx)}
	if by.bound {
		by.sandbox = authority.SandboxOf(row.Config.Approval, row.Authority.Ceiling, s.ceiling)
	}
	return by, nil
}

// resolveSession returns the session that id names, or the services' own session if id is empty. It
// returns a ReachError if the plugin may not name that session.
func (s *services) resolveSession(ctx context.Context, id protocol.SessionID) (protocol.SessionID, error) {
	if id == "" || id == s.session {
		return s.session, nil
	}
	by, err := s.requester(ctx)
	if err == nil {
		err = s.eng.reach(ctx, by, id)
	}
	return id, err
}

// resolveTurn returns the session of a turn, with the same check as resolveSession.
func (s *services) resolveTurn(ctx context.Context, id protocol.TurnID) (protocol.SessionID, error) {
	t, err := s.eng.store.Turn(ctx, id)
	if err != nil {
		return "", err
	}
	return s.resolveSession(ctx, t.Session)
}

// View implements plugin.StateService. It shows committed state only.
func (s *services) View(ctx context.Context, id protocol.SessionID) (*plugin.View, error) {
	id, err := s.resolveSession(ctx, id)
	if err != nil {
		return nil, err
	}
	return do(ctx, s.eng, id, func(_ context.Context, st *state) (*plugin.View, error) { return viewOf(st) })
}

// Catalog implements plugin.StateService. It lists all tools of a session, including unavailable
// ones.
func (s *services) Catalog(ctx context.Context, id protocol.SessionID) ([]protocol.ToolRecord, error) {
	id, err := s.resolveSession(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := s.eng.Tools.List(ctx, &protocol.SessionParams{SessionID: id})
	if err != nil {
		return nil, err
	}
	return r.Data, nil
}

// ToolState implements plugin.StateService. The generation in it changes with every change of the
// tools.
func (s *services) ToolState(ctx context.Context, id protocol.SessionID) (protocol.ToolState, error) {
	id, err := s.resolveSession(ctx, id)
	if err != nil {
		return protocol.ToolState{}, err
	}
	r, err := s.eng.Tools.State(ctx, &protocol.SessionParams{SessionID: id})
	if err != nil {
		return protocol.ToolState{}, err
	}
	return r.State, nil
}

// ApplyToolState implements plugin.StateService. It replaces the tool state and returns the new
// generation. Without a matching generation in state it fails with a GenerationError.
func (s *services) ApplyToolState(ctx context.Context, id protocol.SessionID, state protocol.ToolState) (int64, error) {
	id, err := s.inWorkspace(ctx, id)
	if err != nil {
		return 0, err
	}
	r, err := s.eng.Tools.ApplyState(ctx, &protocol.ToolApplyStateParams{SessionID: id, State: state})
	if err != nil {
		return 0, err
	}
	return r.State.Generation, nil
}

// SetMembership implements plugin.StateService. It adds tools to, or removes them from, what the
// model sees, and returns the new generation.
func (s *services) SetMembership(ctx context.Context, id protocol.SessionID, names []string, member bool) (int64, error) {
	id, err := s.inWorkspace(ctx, id)
	if err != nil {
		return 0, err
	}
	p := &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{}}
	for _, name := range names {
		p.Members[name] = member
	}
	r, err := s.eng.Tools.SetMembership(ctx, p)
	if err != nil {
		return 0, err
	}
	return r.State.Generation, nil
}

// SetAvailability implements plugin.StateService.
func (s *services) SetAvailability(ctx context.Context, id protocol.SessionID, names []string, level protocol.ToolAvailability) (int64, error) {
	id, err := s.inWorkspace(ctx, id)
	if err != nil {
		return 0, err
	}
	r, err := s.eng.Tools.SetAvailability(ctx, &protocol.ToolSetAvailabilityParams{SessionID: id, Names: names, Availability: level})
	if err != nil {
		return 0, err
	}
	return r.State.Generation, nil
}

// WorksForOwn implements plugin.StateService: it reports whether a session is this one or works for
// it, directly or through other subagents. A session that does not exist works for none.
func (s *services) WorksForOwn(ctx context.Context, id protocol.SessionID) (bool, error) {
	for id = cmp.Or(id, s.session); id != s.session; {
		row, err := s.eng.store.Session(ctx, id)
		switch {
		case isGone(err) || err == nil && row.Relation.Parent == "":
			return false, nil
		case err != nil:
			return false, err
		}
		id = row.Relation.Parent
	}
	return true, nil
}

// CreateSession implements plugin.LifecycleService. The new session gets no more authority than the
// requester has.
func (s *services) CreateSession(ctx context.Context, p *protocol.SessionNewParams) (*protocol.SessionNewResult, error) {
	by, err := s.requester(ctx)
	if err != nil {
		return nil, err
	}
	return s.eng.Sessions.new(ctx, &sessionDraft{by: by}, p)
}

// CloseSession implements plugin.LifecycleService. A plugin cannot close the session it runs in.
func (s *services) CloseSession(ctx context.Context, id protocol.SessionID) error {
	if id == s.session {
		return ErrSessionInUse
	}
	id, err := s.resolveSession(ctx, id)
	if err == nil {
		_, err = s.eng.Sessions.Close(ctx, &protocol.SessionMutationParams{SessionID: id})
	}
	return err
}

// DeleteSession implements plugin.LifecycleService. It deletes only direct subagents of this
// session; one that is gone already is no error. The usage of the deleted session stays in the
// parent's ledger.
func (s *services) DeleteSession(ctx context.Context, id protocol.SessionID) error {
	row, err := s.eng.store.Session(ctx, id)
	switch {
	case isGone(err):
		return nil
	case err != nil:
		return err
	case row.Relation.Parent != s.session:
		return param.Bad("/sessionId", "must be a subagent of session %s", s.session)
	}
	_, err = s.eng.Sessions.Delete(ctx, &protocol.SessionMutationParams{SessionID: id})
	return err
}

// StartTurn implements plugin.LifecycleService. The plugin chooses the turn id, which is also the
// idempotency key, so a repeated request starts no second turn. The turn gets the requester's
// ceiling. A plugin cannot start a turn in its own session here, since that turn would wait for the
// current one.
func (s *services) StartTurn(ctx context.Context, q *plugin.TurnRequest) (protocol.TurnID, error) {
	if err := cmp.Or(q.Check(), param.CheckInputsOfPlugin(q.PluginInputs)); err != nil {
		return "", err
	}
	if q.SessionID == s.session {
		return "", ErrSessionInUse
	}
	ceiling, err := s.ceilingIn(ctx, q.SessionID)
	if err != nil {
		return "", err
	}
	r, err := s.eng.Turns.start(ctx, q.TurnID, ceiling, &protocol.TurnStartParams{
		Mutation: protocol.Mutation{IdempotencyKey: "turn:" + string(q.TurnID)}, SessionID: q.SessionID, Input: q.Input,
		PluginInputs: q.PluginInputs, WhenBusy: q.WhenBusy,
	})
	if errors.Is(err, persistence.ErrReceiptConflict) {
		err = &plugin.TurnRequestError{Code: plugin.TurnIDInUse, TurnID: q.TurnID}
	}
	if err != nil {
		return "", err
	}
	return r.TurnID, nil
}

// AwaitTurn implements plugin.LifecycleService. It waits until the turn has ended, including the
// turns that continue it in another frame.
func (s *services) AwaitTurn(ctx context.Context, id protocol.TurnID) (*protocol.TurnReport, error) {
	if _, err := s.resolveTurn(ctx, id); err != nil {
		return nil, err
	}
	return s.eng.Turns.Wait(ctx, &protocol.TurnWaitParams{TurnID: id, Follow: true})
}

// CancelTurn implements plugin.LifecycleService. It returns once the request is stored, not once
// the turn has ended.
func (s *services) CancelTurn(ctx context.Context, id protocol.TurnID) error {
	_, err := s.resolveTurn(ctx, id)
	if err == nil {
		_, err = s.eng.Turns.Interrupt(ctx, "", &protocol.TurnInterruptParams{TurnID: id})
	}
	return err
}

// InjectTurnInput implements plugin.LifecycleService. It steers turns in the sessions that
// StartTurn can reach. A hook cannot steer its own turn with it and uses directives instead.
func (s *services) InjectTurnInput(ctx context.Context, p *protocol.TurnSteerParams) (protocol.InputID, error) {
	t, err := s.eng.store.Turn(ctx, p.TurnID)
	if err != nil {
		return "", err
	}
	if t.Session == s.session {
		return "", ErrSessionInUse
	}
	ceiling, err := s.ceilingIn(ctx, t.Session)
	if err != nil {
		return "", err
	}
	r, err := s.eng.Turns.steer(ctx, ceiling, p)
	if err != nil {
		return "", err
	}
	return r.InputID, nil
}

// TakeFirstTurnInput implements plugin.LifecycleService. It removes and returns the input that
// waits for the first turn of a session. The bool is false if the session is gone.
func (s *services) TakeFirstTurnInput(ctx context.Context, id protocol.SessionID) ([]protocol.InputPart, bool, error) {
	id, err := s.resolveSession(ctx, id)
	if err != nil {
		return nil, false, err
	}
	input, err := do(ctx, s.eng, id, func(ctx context.Context, st *state) ([]protocol.InputPart, error) { return st.takeFirstInput(ctx) })
	if isGone(err) {
		return nil, false, nil
	}
	return input, err == nil, err
}

// AppendNodes implements plugin.GraphService. The session's protocol plugin can reject the nodes.
func (s *services) AppendNodes(ctx context.Context, p *protocol.GraphAppendParams) (*protocol.GraphAppendResult, error) {
	mine := *p
	var err error
	if mine.SessionID, err = s.inWorkspace(ctx, p.SessionID); err != nil {
		return nil, err
	}
	return s.eng.History.Append(ctx, &mine)
}

// Complete implements plugin.CompletionService. The tokens are recorded in the session's ledger.
func (s *services) Complete(ctx context.Context, p *protocol.CompletionParams) (*protocol.CompletionResult, error) {
	mine := *p
	var err error
	if mine.SessionID, err = s.resolveSession(ctx, p.SessionID); err != nil {
		return nil, err
	}
	return s.eng.Completions.create(ctx, s.turn, &mine)
}

// Trace implements plugin.TraceService. It adds the prefix "plugin." to the name.
func (s *services) Trace(name string, payload json.RawMessage) {
	s.tracer(trace.Kind("plugin."+name), payload)
}
