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

// services are what hooks of a session may do, as far as they are granted it: the engine's own methods, with the session as
// the one that is meant where none is named.
type services struct {
	eng     *Engine
	session protocol.SessionID
	turn    protocol.TurnID   // whose hook it is; empty: of none
	ceiling *protocol.Ceiling // of that turn, or of the task
	work    *work             // of the task that it is; nil: it is none
	tracer  func(kind trace.Kind, body any)
}

// capabilities are those of the session that the hooks work for.
func (h *hooks) capabilities() plugin.Capabilities { return h.capabilitiesFor(nil) }

// capabilitiesFor are capabilities for an asker with a ceiling of its own; nil: none.
func (h *hooks) capabilitiesFor(asker *protocol.Ceiling) plugin.Capabilities {
	s := &services{
		eng: h.eng, session: h.session.id, turn: h.caller.turnID(), ceiling: authority.MeetAll(h.judge.ceiling, asker), tracer: h.trace.add,
	}
	return s.all()
}

func (e *Engine) capabilities(id protocol.SessionID, tracer func(trace.Kind, any)) plugin.Capabilities {
	return (&services{eng: e, session: id, tracer: tracer}).all()
}

func (s *services) all() plugin.Capabilities {
	return plugin.Capabilities{State: s, Lifecycle: s, Graph: s, Models: s, Tasks: s, Monitors: monitorService{s}, Tracer: s}
}

// requester is who asks by calling a service: the session, within what its turn or task may do, in a sandbox if the plugin is in one, and
// in plan mode if the session is.
func (s *services) requester(ctx context.Context) (*requester, error) {
	row, err := s.eng.store.Session(ctx, s.session)
	if err != nil {
		return nil, err
	}
	planning := authority.Planning(row.Config, row.Authority.Ceiling)
	return &requester{s.session, authority.MeetAll(s.ceiling, authority.InSandbox(ctx), planning), authority.IsLoaded(ctx)}, nil
}

// resolveSession is a session that is named, if the asker may name it. Where none is named it is the asker's own.
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

// resolveTurn is the session of a turn that is named, if the asker may name it.
func (s *services) resolveTurn(ctx context.Context, id protocol.TurnID) (protocol.SessionID, error) {
	t, err := s.eng.store.Turn(ctx, id)
	if err != nil {
		return "", err
	}
	return s.resolveSession(ctx, t.Session)
}

// View implements plugin.StateService: what is settled.
func (s *services) View(ctx context.Context, id protocol.SessionID) (*plugin.View, error) {
	id, err := s.resolveSession(ctx, id)
	if err != nil {
		return nil, err
	}
	return do(ctx, s.eng, id, func(_ context.Context, st *state) (*plugin.View, error) { return viewOf(st) })
}

// Catalog implements plugin.StateService.
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

// ToolState implements plugin.StateService.
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

// ApplyToolState implements plugin.StateService.
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

// SetMembership implements plugin.StateService.
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

// WorksForOwn implements plugin.StateService. One that is not there works for nobody.
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

// CreateSession implements plugin.LifecycleService.
func (s *services) CreateSession(ctx context.Context, p *protocol.SessionNewParams) (*protocol.SessionNewResult, error) {
	by, err := s.requester(ctx)
	if err != nil {
		return nil, err
	}
	return s.eng.Sessions.new(ctx, by, p)
}

// CloseSession implements plugin.LifecycleService.
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

// DeleteSession implements plugin.LifecycleService. What the session has used stays in the ledger of the one it worked for.
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

// StartTurn implements plugin.LifecycleService. The turn's id is its idempotency key as well.
func (s *services) StartTurn(ctx context.Context, q *plugin.TurnRequest) (protocol.TurnID, error) {
	if err := q.Check(); err != nil {
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

// AwaitTurn implements plugin.LifecycleService.
func (s *services) AwaitTurn(ctx context.Context, id protocol.TurnID) (*protocol.TurnReport, error) {
	if _, err := s.resolveTurn(ctx, id); err != nil {
		return nil, err
	}
	return s.eng.Turns.Wait(ctx, &protocol.TurnWaitParams{TurnID: id, Follow: true})
}

// CancelTurn implements plugin.LifecycleService.
func (s *services) CancelTurn(ctx context.Context, id protocol.TurnID) error {
	_, err := s.resolveTurn(ctx, id)
	if err == nil {
		_, err = s.eng.Turns.Interrupt(ctx, "", &protocol.TurnInterruptParams{TurnID: id})
	}
	return err
}

// InjectTurnInput implements plugin.LifecycleService. It reaches the sessions that StartTurn does. A hook does not steer its own turn: it has
// directives for that.
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

// TakeFirstTurnInput implements plugin.LifecycleService.
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

// AppendNodes implements plugin.GraphService.
func (s *services) AppendNodes(ctx context.Context, p *protocol.GraphAppendParams) (*protocol.GraphAppendResult, error) {
	mine := *p
	var err error
	if mine.SessionID, err = s.inWorkspace(ctx, p.SessionID); err != nil {
		return nil, err
	}
	return s.eng.History.Append(ctx, &mine)
}

// Complete implements plugin.CompletionService.
func (s *services) Complete(ctx context.Context, p *protocol.CompletionParams) (*protocol.CompletionResult, error) {
	mine := *p
	var err error
	if mine.SessionID, err = s.resolveSession(ctx, p.SessionID); err != nil {
		return nil, err
	}
	return s.eng.Completions.Create(ctx, &mine)
}

// Trace implements plugin.TraceService.
func (s *services) Trace(name string, payload json.RawMessage) {
	s.tracer(trace.Kind("plugin."+name), payload)
}
