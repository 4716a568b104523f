package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/engine/authority"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// CallTool runs a tool without a model. The session's approval rules hold, but nobody is asked: what a person would
// have to be asked about is allowed, because a person made the request. With a key the call is journaled, so that a
// repetition after a crash does not run it twice.
func (e *Engine) CallTool(ctx context.Context, p *protocol.ToolCallParams) (*protocol.ToolCallResult, error) {
	return single(ctx, e, "tool/call", p.Key(), p, func(rc receipt) (*protocol.ToolCallResult, error) {
		l, err := e.lend(ctx, p.SessionID)
		if err != nil {
			return nil, err
		}
		defer l.back()
		r, s, err := l.call(p, rc)
		if err != nil {
			return nil, err
		}
		if err := r.direct(l.ctx, s); err != nil {
			return nil, s.interrupted(cancelledOr(l.ctx, err))
		}
		result := &protocol.ToolCallResult{CallID: s.call.CallID, Output: s.reply.Seen(), DurationMs: s.reply.DurationMs}
		return result, s.interrupted(r.endDirect(ctx, rc.with(result)))
	})
}

// interrupted is why a call without a turn has no end, if it has none.
func (s *stage) interrupted(err error) error {
	if err == nil || s.attempt == 0 {
		return err
	}
	return &InterruptedError{fmt.Sprintf("the tool %s", s.call.Name), err}
}

// call is a call of a tool that was borrowed.
func (l *lease) call(p *protocol.ToolCallParams, rc receipt) (*run, *stage, error) {
	call := protocol.ToolCall{CallID: protocol.CallID("call_" + string(protocol.NewInputID())), Name: p.Name, Args: p.Args}
	if rc.key != "" {
		call.CallID = protocol.CallID("call_" + string(protocol.DigestOf(append([]byte(rc.key), rc.hash...))[:32]))
	}
	if len(call.Args) == 0 {
		call.Args = json.RawMessage(`{}`)
	}
	s := &stage{asked: call, call: call, effect: 1}
	s.check(l.catalog)
	if s.entry == nil {
		return nil, nil, fmt.Errorf("%q: %w", p.Name, ErrToolNotFound)
	}
	if s.reply != nil {
		return nil, nil, bad("/args", "%s", s.reply.Output.Text)
	}
	return &run{
		session: l.session, id: protocol.TurnID(call.CallID), begin: beginning{Config: l.about.Config}, cwd: l.about.Cwd, about: l.about, life: l.ctx,
		ceiling: authority.Planning(l.about.Config, l.about.Authority.Ceiling), plugins: l.plugins, catalog: l.catalog, base: l.box.composer.Base(), keyed: rc.key != "",
	}, s, nil
}

// direct runs a borrowed tool, unless a plugin or a rule denies it, or a daemon that died has started the same call before.
func (r *run) direct(ctx context.Context, s *stage) error {
	if err := r.recallDirect(ctx, s); err != nil || s.reply != nil {
		return err
	}
	if s.given == nil {
		if err := r.startDirect(ctx, s); err != nil || s.reply != nil {
			return err
		}
	}
	reply, ok := r.attempts(ctx, s)
	if !ok {
		return ErrShuttingDown
	}
	if err := cancellation(ctx); err != nil {
		return err // also if the tool returned something: plugins may not have seen it
	}
	s.reply = &reply
	return nil
}

// cancellation is why ctx is done, unless the daemon stops: then results that are known are kept.
func cancellation(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// startDirect makes durable that a call is about to run, unless it is refused.
func (r *run) startDirect(ctx context.Context, s *stage) error {
	if err := r.beforeCalls(ctx, []*stage{s}); err != nil || s.reply != nil {
		return err
	}
	v := r.unanswered(s)
	if v.mode == protocol.ApproveAsk && s.sandboxed { // a plugin in a sandbox makes the call, not the person, and nobody can be asked
		v = verdict{mode: protocol.ApproveDeny, beyond: true}
	}
	if v.mode == protocol.ApproveDeny {
		s.deny(v)
		return nil
	}
	s.begin()
	err := r.storeDirect(ctx, s)
	if err != nil {
		s.attempt-- // it is not made
	}
	return err
}

// recallDirect looks what a daemon that died knew of the call, and of those that it has made.
func (r *run) recallDirect(ctx context.Context, s *stage) error {
	if !r.keyed {
		return nil
	}
	rows, err := r.eng.store.Effects(ctx, r.id)
	if err != nil {
		return err
	}
	for _, row := range rows {
		switch {
		case row.Ordinal == s.ordinal:
			err = errors.Join(err, s.recall(row))
		case row.Ordinal/innerRows-1 == s.ordinal:
			s.inner.know(row.Ordinal%innerRows, row)
		}
	}
	if err == nil && s.reply == nil && s.given == nil && s.began && !s.repeatable() {
		s.unfinished()
	}
	return err
}

// storeDirect makes durable that a call is about to run, or what it came to.
func (r *run) storeDirect(ctx context.Context, s *stage) error {
	if !r.keyed {
		return nil
	}
	row := r.callRow(s)
	_, err := do(context.WithoutCancel(ctx), r.eng, r.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commit(ctx, st.change(persistence.Commit{Effects: []persistence.Effect{row}}))
	})
	return err
}

// endDirect stores what the call came to, and what plugins keep then.
func (r *run) endDirect(ctx context.Context, rc *persistence.Receipt) error {
	_, err := do(context.WithoutCancel(ctx), r.eng, r.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		rows := persistence.Commit{Receipt: rc}
		if rc != nil {
			rows.Retire = []protocol.TurnID{r.id}
		}
		return struct{}{}, st.commitKept(ctx, rows)
	})
	return err
}
