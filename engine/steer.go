package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Steer sends an input into a running turn: it enters at the next checkpoint of its boundary, or, if the turn ends
// before, gets the next turn.
func (e *Engine) Steer(ctx context.Context, p *protocol.TurnSteerParams) (*protocol.TurnSteerResult, error) {
	if err := checkInput(p.Input); err != nil {
		return nil, err
	}
	t, err := e.store.Turn(ctx, p.TurnID)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, e, t.Session, "turn/steer", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.TurnSteerResult, error) {
		if st.current == nil || st.current.id != p.TurnID {
			return nil, fmt.Errorf("turn %s: %w", p.TurnID, ErrTurnNotActive)
		}
		return st.steer(ctx, p.Input, p.Boundary, func(r *protocol.TurnSteerResult) *persistence.Receipt { return rc.with(r) })
	})
}

func (st *state) steer(ctx context.Context, input []protocol.InputPart, at protocol.Boundary, rc func(*protocol.TurnSteerResult) *persistence.Receipt) (*protocol.TurnSteerResult, error) {
	if at == "" {
		at = protocol.BoundaryAfterWork
	}
	in := protocol.QueuedInput{
		ID: protocol.NewInputID(), TurnID: st.current.id, State: protocol.InputPendingActive, Input: input, Boundary: at, AtMs: now(),
	}
	result := &protocol.TurnSteerResult{InputID: in.ID, Seq: st.row.Seq + 1}
	queue := append(slices.Clone(st.inputs), in)
	c := &persistence.Commit{Receipt: rc(result), Inputs: []protocol.QueuedInput{in}}
	if _, err := st.commit(ctx, c, queueChanged(queue)); err != nil {
		return nil, err
	}
	st.inputs = queue
	return result, nil
}

// steerInstead is turn/start of a busy session whose client wants to steer.
func (st *state) steerInstead(ctx context.Context, p *protocol.TurnStartParams, rc receipt) (*protocol.TurnStartResult, error) {
	result := &protocol.TurnStartResult{TurnID: st.current.id, State: protocol.TurnRunning}
	_, err := st.steer(ctx, p.Input, protocol.BoundaryAfterWork, func(r *protocol.TurnSteerResult) *persistence.Receipt {
		result.InputID, result.Seq = r.InputID, r.Seq
		return rc.with(result)
	})
	return result, err
}

// checkpoint lets in what waits for this seam. What enters is durable before the model sees it.
func (r *run) checkpoint(ctx context.Context, effect turn.Effect) error {
	streamed := r.streamed
	answer, err := do(context.WithoutCancel(ctx), r.eng, r.session.id, func(ctx context.Context, st *state) (turn.Delivery, error) {
		return st.admit(ctx, r, effect)
	})
	if err != nil {
		return err
	}
	if len(answer.Inputs) > 0 {
		r.feed.end(streamed, false)
		r.streamed = nil
		r.machine.Deliver(effect.ID, turn.Response{Checkpoint: &answer}) // its journal row is written already
		r.noteNodes()
		return nil
	}
	r.deliver(effect, turn.Response{Checkpoint: &answer})
	return nil
}

func (st *state) admit(ctx context.Context, r *run, effect turn.Effect) (turn.Delivery, error) {
	var d turn.Delivery
	kind := effect.Checkpoint.Kind
	inputs := slices.Clone(st.inputs)
	var admitted []protocol.QueuedInput
	var ids []protocol.InputID
	for i := range inputs {
		in := &inputs[i]
		early := in.Boundary == protocol.BoundaryBeforeCompletion && kind == protocol.BoundaryAfterWork
		if in.TurnID != r.id || in.State != protocol.InputPendingActive || early {
			continue
		}
		in.State = protocol.InputAccepted
		admitted, ids = append(admitted, *in), append(ids, in.ID)
		d.Inputs = append(d.Inputs, protocol.UserMessage(in.Input, &protocol.Origin{Kind: protocol.OriginTurnInput, TurnID: r.id, InputID: in.ID}))
	}
	if len(admitted) == 0 {
		return d, nil
	}
	c := &persistence.Commit{Inputs: admitted, Effects: r.journal.take()}
	c.Effects = append(c.Effects, persistence.Effect{
		Turn: r.id, ID: effect.ID, Kind: string(effect.Kind), Finished: true, Hash: envelope(effect),
		Body: encode(turn.Response{Checkpoint: &d}),
	})
	c.Fence.Turn, c.Fence.Incarnation = r.id, st.eng.incarnation
	events := append(r.news(), logEvent{Event: protocol.Event{Type: protocol.EventInputAccepted, TurnID: r.id, InputIDs: ids, Boundary: kind}}, queueChanged(inputs))
	if _, err := st.commit(ctx, c, events...); err != nil {
		return d, err
	}
	st.inputs = inputs
	return d, nil
}

// Interrupt stops a turn. Exactly one of the interrupt and the turn's own end wins, and the answer says which.
func (e *Engine) Interrupt(ctx context.Context, client protocol.ClientID, p *protocol.TurnInterruptParams) (*protocol.TurnInterruptResult, error) {
	t, err := e.store.Turn(ctx, p.TurnID)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, e, t.Session, "turn/interrupt", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.TurnInterruptResult, error) {
		open, ok := st.openTurn(p.TurnID)
		switch {
		case !ok:
			return &protocol.TurnInterruptResult{Status: protocol.InterruptTooLate, Seq: st.row.Seq}, nil
		case open.Cancel != nil:
			return &protocol.TurnInterruptResult{Status: protocol.InterruptAlready, Seq: st.row.Seq}, nil
		}
		evidence := protocol.CancelEvidence{RequestID: cmpOr(p.Key(), "internal:interrupt"), Origin: string(client), Reason: p.Reason}
		result := &protocol.TurnInterruptResult{Status: protocol.InterruptRequested, Seq: st.row.Seq}
		if st.current == nil || st.current.id != p.TurnID {
			outcome := protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &evidence}
			return result, st.endUnstarted(ctx, open, protocol.TurnCancelled, outcome, nil, rc, result)
		}
		return result, st.requestCancel(ctx, open, evidence, rc, result)
	})
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// requestCancel makes the wish durable, then stops the turn: a crash in between stops it after the restart.
func (st *state) requestCancel(ctx context.Context, t persistence.StoredTurn, evidence protocol.CancelEvidence, rc receipt, result any) error {
	t.Cancel = &evidence
	if _, err := st.commit(ctx, &persistence.Commit{Turns: []persistence.Turn{t.Turn}, Receipt: rc.with(result)}); err != nil {
		return err
	}
	for i := range st.turns {
		if st.turns[i].ID == t.ID {
			st.turns[i].Cancel = &evidence
		}
	}
	st.current.cancel(&cancelled{evidence})
	return nil
}

// WaitTurn waits until a turn has ended, a timeout passed or ctx is done, and reports the turn as it then is. It may
// be asked by anybody, any number of times, also long after the end.
func (e *Engine) WaitTurn(ctx context.Context, p *protocol.TurnWaitParams) (*protocol.TurnReport, error) {
	timeout := after(p.TimeoutMs)
	for {
		again := e.turnEnded.Next()
		report, err := e.ReadTurn(ctx, &protocol.TurnParams{TurnID: p.TurnID})
		if err != nil || report.State.Terminal() {
			return report, err
		}
		select {
		case <-again:
		case <-timeout:
			return report, nil
		case <-e.stopping():
			return nil, ErrShuttingDown
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// after is a channel that fires after some milliseconds, or never for 0.
func after(ms int64) <-chan time.Time {
	if ms <= 0 {
		return nil
	}
	return time.After(time.Duration(ms) * time.Millisecond)
}

func (e *Engine) stopping() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil {
		return nil // Run has not begun: nothing stops
	}
	return e.ctx.Done()
}

// ReadTurn reports a turn as it is.
func (e *Engine) ReadTurn(ctx context.Context, p *protocol.TurnParams) (*protocol.TurnReport, error) {
	t, err := e.store.Turn(ctx, p.TurnID)
	if err != nil {
		return nil, err
	}
	return reportOf(t), nil
}

func reportOf(t persistence.StoredTurn) *protocol.TurnReport {
	if t.Report != nil {
		return t.Report
	}
	return &protocol.TurnReport{
		TurnID: t.ID, SessionID: t.Session, State: t.State, AcceptedAtMs: t.AcceptedMs, StartedAtMs: t.StartedMs,
	}
}

// Turns lists a session's turns, newest first.
func (e *Engine) Turns(ctx context.Context, p *protocol.TurnListParams) (*protocol.TurnListResult, error) {
	row, err := e.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	before, err := parseCursor(p.Cursor, 1)
	if err != nil {
		return nil, err
	}
	limit := bounded(p.Limit, 50, 200)
	turns, err := e.store.Turns(ctx, row.Key, before[0], limit)
	if err != nil {
		return nil, err
	}
	result := &protocol.TurnListResult{Data: []protocol.TurnReport{}}
	for _, t := range turns {
		result.Data = append(result.Data, *reportOf(t))
	}
	if len(turns) == limit {
		result.NextCursor = cursor(turns[limit-1].Order)
	}
	return result, nil
}

// Queue lists inputs.
func (e *Engine) Queue(ctx context.Context, p *protocol.QueueListParams) (*protocol.QueueListResult, error) {
	if p.All {
		row, err := e.store.Session(ctx, p.SessionID)
		if err != nil {
			return nil, err
		}
		inputs, err := e.store.Inputs(ctx, row.Key, 200)
		return &protocol.QueueListResult{Data: list(inputs)}, err
	}
	return do(ctx, e, p.SessionID, func(_ context.Context, st *state) (*protocol.QueueListResult, error) {
		return &protocol.QueueListResult{Data: list(slices.Clone(st.inputs))}, nil
	})
}

// CancelInput withdraws inputs that no turn has taken in.
func (e *Engine) CancelInput(ctx context.Context, p *protocol.QueueCancelParams) (*protocol.QueueCancelResult, error) {
	return mutate(ctx, e, p.SessionID, "queue/cancel", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.QueueCancelResult, error) {
		first := slices.IndexFunc(st.inputs, func(in protocol.QueuedInput) bool { return in.ID == p.InputID })
		if first < 0 {
			return st.endedInput(ctx, p.InputID)
		}
		last := first + 1
		if p.Suffix {
			last = len(st.inputs)
		}
		return st.withdraw(ctx, st.inputs[first:last], rc)
	})
}

func (st *state) endedInput(ctx context.Context, id protocol.InputID) (*protocol.QueueCancelResult, error) {
	status := protocol.CancelNotFound
	in, err := st.eng.store.Input(ctx, st.key, id)
	switch {
	case errors.Is(err, persistence.ErrNotFound):
	case err != nil:
		return nil, err
	case in.State == protocol.InputCancelled:
		status = protocol.CancelAlreadyCancelled
	default:
		status = protocol.CancelAlreadyCompleted
	}
	return &protocol.QueueCancelResult{Data: []protocol.CancelledInput{{InputID: id, Status: status}}, Seq: st.row.Seq}, nil
}

// withdraw cancels inputs, and the turns that are left without any. One commit does it all.
func (st *state) withdraw(ctx context.Context, targets []protocol.QueuedInput, rc receipt) (*protocol.QueueCancelResult, error) {
	result := &protocol.QueueCancelResult{}
	c := &persistence.Commit{}
	gone := map[protocol.InputID]bool{}
	for _, in := range targets {
		status := protocol.CancelDone
		if in.State == protocol.InputAccepted || st.current != nil && in.TurnID == st.current.id && in.State != protocol.InputPendingActive {
			status = protocol.CancelAlreadyClaimed
		} else {
			in.State = protocol.InputCancelled
			c.Inputs = append(c.Inputs, in)
			gone[in.ID] = true
		}
		result.Data = append(result.Data, protocol.CancelledInput{InputID: in.ID, Status: status})
	}
	left := slices.DeleteFunc(slices.Clone(st.inputs), func(in protocol.QueuedInput) bool { return gone[in.ID] })
	events := st.emptied(c, left)
	if len(gone) > 0 {
		events = append(events, queueChanged(left))
	}
	result.Seq = st.row.Seq + protocol.Seq(len(events))
	c.Receipt = rc.with(result)
	if _, err := st.commit(ctx, c, events...); err != nil {
		return nil, err
	}
	st.inputs = left
	for _, t := range c.Turns {
		st.turns = slices.DeleteFunc(st.turns, func(o persistence.StoredTurn) bool { return o.ID == t.ID })
	}
	st.eng.turnEnded.Notify()
	return result, nil
}

// emptied ends the queued turns that have no input any more.
func (st *state) emptied(c *persistence.Commit, left []protocol.QueuedInput) []logEvent {
	var events []logEvent
	for _, t := range st.turns {
		has := slices.ContainsFunc(left, func(in protocol.QueuedInput) bool { return in.TurnID == t.ID })
		if has || t.State != protocol.TurnQueued {
			continue
		}
		outcome := protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &protocol.CancelEvidence{RequestID: "internal:queue", Reason: "its input was withdrawn"}}
		t.State = protocol.TurnCancelled
		t.Report = &protocol.TurnReport{TurnID: t.ID, SessionID: st.id, State: t.State, Outcome: &outcome, AcceptedAtMs: t.AcceptedMs}
		c.Turns = append(c.Turns, t.Turn)
		events = append(events, logEvent{Event: protocol.Event{Type: protocol.EventTurnCompleted, TurnID: t.ID, Outcome: &outcome, Usage: &protocol.Usage{}}})
	}
	return events
}
