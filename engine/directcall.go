package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/engine/approval"
	"lashd/engine/audit"
	"lashd/engine/authority"
	"lashd/engine/change"
	"lashd/engine/param"
	"lashd/engine/queue"
	"lashd/engine/receipt"
	"lashd/engine/undo"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Call runs a tool for a client, without a model and outside any turn. The session's rules apply,
// but no person is asked: a call that would need approval is allowed, because a person made the
// request. With an idempotency key the call is journaled, so a repetition after a crash does not
// run it twice.
func (ts *Tools) Call(ctx context.Context, p *protocol.ToolCallParams) (*protocol.ToolCallResult, error) {
	return receipt.Once(ctx, ts.eng.receipts, "tool/call", p.Key(), p, func(rc receipt.Request) (*protocol.ToolCallResult, error) {
		l, err := ts.eng.lend(ctx, p.SessionID)
		if err != nil {
			return nil, err
		}
		defer l.release()
		d, s, err := l.call(p, rc)
		if err != nil {
			return nil, err
		}
		if err := d.run(l.ctx, s); err != nil {
			return nil, s.interrupted(cancelledOr(l.ctx, err))
		}
		result := &protocol.ToolCallResult{CallID: s.CallID, Output: s.reply.Seen(), DurationMs: s.reply.DurationMs}
		return result, s.interrupted(d.end(ctx, rc.With(result), queue.CallWake(p.Tell, s.ToolCall, &result.Output)))
	})
}

// interrupted returns err as an InterruptedError if the call had started, since its outcome is
// unknown then. Before that, err is returned as it is.
func (s *toolCall) interrupted(err error) error {
	if err == nil || s.attempt == 0 {
		return err
	}
	return &InterruptedError{fmt.Sprintf("the tool %s", s.Name), err}
}

// directCall is the caller of a tool call that a client makes without a turn. One goroutine owns
// it, that of the request.
type directCall struct {
	*callMaker
	// id takes the place of a turn id in the journal. It equals the call id.
	id protocol.TurnID
	// journaled is set if the request has an idempotency key. Otherwise nothing is journaled.
	journaled bool
	audits    audit.Queue // for the commit at the end
}

// turnID implements caller.
func (d *directCall) turnID() protocol.TurnID { return "" }

// journalID implements caller.
func (d *directCall) journalID() protocol.TurnID { return d.id }

// tell implements caller.
func (d *directCall) tell(ctx context.Context, events []change.Event) error {
	_, err := do(ctx, d.eng, d.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commitEvents(ctx, events...)
	})
	return err
}

// decisions implements caller.
func (d *directCall) decisions() *asks { return nil }

// watched implements caller.
func (d *directCall) filePoint() *undo.Point { return nil }

// nested implements caller. It runs the calls one after the other, not in parallel.
func (d *directCall) nested(ctx context.Context, _ *callMaker, calls []*toolCall) error {
	for _, s := range calls {
		if s.reply != nil {
			continue
		}
		if err := d.run(ctx, s); err != nil {
			return err
		}
		if err := d.store(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// carriesOut implements caller.
func (d *directCall) appliesIntents() bool { return false }

// addRow implements caller.
func (d *directCall) addRow(c *change.Change, row persistence.Effect) {
	if d.journaled {
		c.Effects = append(c.Effects, row)
	}
}

// call prepares the direct call that a client requests, with the plugins of the lease. It fails if
// the session has no such tool or if the arguments do not match its schema. With an idempotency key
// the call id derives from the request, so that a repetition finds its rows in the journal.
func (l *lease) call(p *protocol.ToolCallParams, rc receipt.Request) (*directCall, *toolCall, error) {
	call := protocol.ToolCall{CallID: directCallID(rc), Name: p.Name, Args: p.Args}
	if len(call.Args) == 0 {
		call.Args = json.RawMessage(`{}`)
	}
	s := &toolCall{original: call, ToolCall: call, effect: 1}
	s.check(l.catalog)
	if s.entry == nil {
		return nil, nil, fmt.Errorf("%q: %w", p.Name, ErrToolNotFound)
	}
	if s.reply != nil {
		return nil, nil, param.Bad("/args", "%s", s.reply.Output.Text)
	}
	return l.direct(call.CallID, rc.Key != ""), s, nil
}

// directCallID returns the id of a direct call. A repetition of a request with an idempotency key
// gets the same id.
func directCallID(rc receipt.Request) protocol.CallID {
	if rc.Key == "" {
		return protocol.CallID("call_" + string(protocol.NewInputID()))
	}
	return protocol.CallID("call_" + string(protocol.DigestOf(append([]byte(rc.Key), rc.Hash...))[:32]))
}

// direct returns the caller of direct calls, with the plugins of the lease and the authority of the
// session.
func (l *lease) direct(id protocol.CallID, journaled bool) *directCall {
	d := &directCall{id: protocol.TurnID(id), journaled: journaled}
	j := &judge{
		config: &l.row.Config, cwd: l.row.Cwd, sessionCeiling: l.row.Authority.Ceiling, plugins: l.plugins, base: l.set.composer.Base(), rules: l.eng.rules,
		ceiling: authority.Planning(l.row.Config, l.row.Authority.Ceiling),
	}
	h := &hooks{
		session: l.session, caller: d, plugins: l.plugins, judge: j, trace: turnTrace{out: l.eng.Trace, session: l.session.id, turn: d.id},
	}
	d.callMaker = &callMaker{session: l.session, caller: d, hooks: h, catalog: l.catalog}
	return d
}

// run executes the call and sets its reply. It does not execute it if a hook or a rule denies it,
// or if an earlier run of the daemon started it and it is not repeatable.
func (d *directCall) run(ctx context.Context, s *toolCall) error {
	if err := d.restoreJournaled(ctx, s); err != nil || s.reply != nil {
		return err
	}
	if s.clientOutput == nil {
		if err := d.start(ctx, s); err != nil || s.reply != nil {
			return err
		}
	}
	reply, ok := d.callWithRetries(ctx, s)
	if !ok {
		return ErrShuttingDown
	}
	if err := cancelCause(ctx); err != nil {
		return err // also if the tool returned something: plugins may not have seen it
	}
	s.reply = &reply
	d.audits.Add("", s.CallID, s.decided.Ends(s.judged, &reply.Output))
	return nil
}

// cancelCause returns why ctx is done. It returns nil if the daemon is stopping: results that are
// known then are kept.
func cancelCause(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// start asks hooks and rules, and then commits that the call is about to run. If they refuse the
// call, its reply is set and nothing is committed.
func (d *directCall) start(ctx context.Context, s *toolCall) error {
	if err := d.hooks.beforeCalls(ctx, []*toolCall{s}); err != nil || s.reply != nil {
		return err
	}
	v := d.hooks.judge.judgeUnasked(s)
	if v.Mode == protocol.ApproveAsk && s.sandboxed { // a sandboxed plugin changed the call, and there is no turn in which to ask a person
		v = approval.Verdict{Mode: protocol.ApproveDeny, Beyond: true}
	}
	s.decided.ByClient(v)
	if v.Mode == protocol.ApproveDeny {
		s.deny(v)
		d.audits.Add("", s.CallID, s.decided.Ends(s.judged, &s.reply.Output))
		return nil
	}
	s.begin()
	d.audits.Add("", s.CallID, s.decided.Starts(s.judged))
	err := d.store(ctx, s)
	if err != nil {
		s.attempt-- // the attempt did not happen
	}
	return err
}

// restoreJournaled reads what an earlier run of the daemon stored about the call and about the
// calls that it made itself.
func (d *directCall) restoreJournaled(ctx context.Context, s *toolCall) error {
	if !d.journaled {
		return nil
	}
	var rows []persistence.Effect
	var err error
	if s.Parent == "" { // a nested call got its row when it was made
		rows, err = d.eng.store.Effects(ctx, d.id)
	}
	for _, row := range rows {
		switch {
		case row.Ordinal == s.ordinal:
			err = errors.Join(err, s.restore(row))
		case row.Ordinal/maxNestedCalls-1 == s.ordinal:
			s.inner.addRow(row.Ordinal%maxNestedCalls, row)
		}
	}
	if err == nil && s.reply == nil && s.clientOutput == nil && s.resultLost && !s.repeatable() {
		s.endUnfinished()
	}
	return err
}

// store commits the journal row of the call, before it runs and when it has a result.
func (d *directCall) store(ctx context.Context, s *toolCall) error {
	return d.storeRows(ctx, []persistence.Effect{d.row(s)})
}

// storeRows commits rows of the journal, unless nothing is journaled.
func (d *directCall) storeRows(ctx context.Context, rows []persistence.Effect) error {
	if !d.journaled {
		return nil
	}
	_, err := do(context.WithoutCancel(ctx), d.eng, d.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commit(ctx, st.change(persistence.Commit{Effects: rows}))
	})
	return err
}

// end commits the receipt of the request together with new plugin state and the wake that tells the
// model of the call, unless that is nil. It removes the journal rows, which the receipt replaces.
func (d *directCall) end(ctx context.Context, rc *persistence.Receipt, tell *queue.Wake) error {
	ctx = context.WithoutCancel(ctx)
	var kept idleCapture
	if st, err := loadedState(ctx, d.eng, d.session.id); err == nil {
		kept = st.plugins.captureIdle(ctx)
	}
	_, err := do(ctx, d.eng, d.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		rows := persistence.Commit{Receipt: rc}
		if rc != nil {
			rows.Retire = []protocol.TurnID{d.id}
		}
		c := st.change(rows)
		d.audits.AddTo(c)
		kept.addTo(c, st)
		if tell != nil {
			if _, refused, err := st.queue.In(c).Wake(ctx, c, st.eng.store, *tell); err != nil || refused != "" {
				st.eng.Log.Error("cannot tell the model of a call that a client made", "call", d.id, "refused", refused, "error", err)
			}
		}
		return struct{}{}, st.commitUnlessEmpty(ctx, c)
	})
	return err
}
