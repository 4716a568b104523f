package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/engine/approval"
	"lashd/engine/authority"
	"lashd/engine/change"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/undo"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Call runs a tool without a model. The session's approval rules hold, but nobody is asked: what a person would
// have to be asked about is allowed, because a person made the request. With a key the call is journaled, so that a
// repetition after a crash does not run it twice.
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
		return result, s.interrupted(d.end(ctx, rc.With(result)))
	})
}

// interrupted is why a call without a turn has no end, if it has none.
func (s *toolCall) interrupted(err error) error {
	if err == nil || s.attempt == 0 {
		return err
	}
	return &InterruptedError{fmt.Sprintf("the tool %s", s.Name), err}
}

// directCall is a call of a tool that a client makes, without a turn.
type directCall struct {
	*callMaker
	id        protocol.TurnID // that its rows in the journal stand under
	journaled bool            // it is journaled
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

// nested implements caller. The calls are made one after the other.
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

// call is a call of a tool that was borrowed.
func (l *lease) call(p *protocol.ToolCallParams, rc receipt.Request) (*directCall, *toolCall, error) {
	call := protocol.ToolCall{CallID: protocol.CallID("call_" + string(protocol.NewInputID())), Name: p.Name, Args: p.Args}
	if rc.Key != "" {
		call.CallID = protocol.CallID("call_" + string(protocol.DigestOf(append([]byte(rc.Key), rc.Hash...))[:32]))
	}
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
	d := &directCall{id: protocol.TurnID(call.CallID), journaled: rc.Key != ""}
	j := &judge{
		config: &l.row.Config, cwd: l.row.Cwd, sessionCeiling: l.row.Authority.Ceiling, plugins: l.plugins, base: l.set.composer.Base(),
		ceiling: authority.Planning(l.row.Config, l.row.Authority.Ceiling),
	}
	h := &hooks{
		session: l.session, caller: d, plugins: l.plugins, judge: j, trace: turnTrace{out: l.eng.Trace, session: l.session.id, turn: d.id},
	}
	d.callMaker = &callMaker{session: l.session, caller: d, hooks: h, catalog: l.catalog}
	return d, s, nil
}

// run runs a borrowed tool, unless a plugin or a rule denies it, or a daemon that died has started the same call before.
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
	return nil
}

// cancelCause is why ctx is done, unless the daemon stops: then results that are known are kept.
func cancelCause(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// start makes durable that a call is about to run, unless it is refused.
func (d *directCall) start(ctx context.Context, s *toolCall) error {
	if err := d.hooks.beforeCalls(ctx, []*toolCall{s}); err != nil || s.reply != nil {
		return err
	}
	v := d.hooks.judge.judgeUnasked(s)
	if v.Mode == protocol.ApproveAsk && s.sandboxed { // a plugin in a sandbox makes the call, not the person, and nobody can be asked
		v = approval.Verdict{Mode: protocol.ApproveDeny, Beyond: true}
	}
	if v.Mode == protocol.ApproveDeny {
		s.deny(v)
		return nil
	}
	s.begin()
	err := d.store(ctx, s)
	if err != nil {
		s.attempt-- // it is not made
	}
	return err
}

// restoreJournaled looks what a daemon that died knew of the call, and of those that it has made.
func (d *directCall) restoreJournaled(ctx context.Context, s *toolCall) error {
	if !d.journaled {
		return nil
	}
	rows, err := d.eng.store.Effects(ctx, d.id)
	if err != nil {
		return err
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

// store makes durable that a call is about to run, or what it came to.
func (d *directCall) store(ctx context.Context, s *toolCall) error {
	if !d.journaled {
		return nil
	}
	row := d.row(s)
	_, err := do(context.WithoutCancel(ctx), d.eng, d.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commit(ctx, st.change(persistence.Commit{Effects: []persistence.Effect{row}}))
	})
	return err
}

// end stores what the call came to, and what plugins keep then.
func (d *directCall) end(ctx context.Context, rc *persistence.Receipt) error {
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
		kept.addTo(c, st)
		return struct{}{}, st.commitUnlessEmpty(ctx, c)
	})
	return err
}
