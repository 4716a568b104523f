package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"lashd/engine/decision"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/engine/trace"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// A deferred call returns before its work is done and is completed from outside with tool/complete.
// It has a decision, which the completion answers. So the wait is durable before anyone has the key,
// the first completion counts, and the deadline survives a restart of the daemon.

// Limits of the time that a deferred call may wait for its completion.
const (
	// defaultDeferral is the limit if the tool sets none.
	defaultDeferral = 24 * time.Hour
	// maxDeferral is the longest limit that a tool can set.
	maxDeferral = 366 * defaultDeferral
)

// CompletionKey implements tool.Deferrer. It commits the wait for a completion before it returns
// the key, so a key that someone holds is always known to lashd. Later calls in the same attempt
// return the same key.
func (h *toolHost) CompletionKey(ctx context.Context, how protocol.Deferral) (protocol.CompletionKey, error) {
	switch {
	case !h.call.entry.Terms().MayDefer:
		return "", tool.ErrMayNotDefer
	case h.maker.caller.decisions() == nil:
		return "", tool.ErrNoTurn
	}
	_, leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if h.call.awaited == nil {
		if err := h.maker.caller.decisions().deferCall(h.call, how); err != nil {
			return "", err
		}
	}
	return h.maker.eng.Decisions.keyOf(&h.call.awaited.Decision), nil
}

// keyOf returns the key that completes a waiting call. Every client of the session can see the id
// of the decision, so the key adds a signature with the store's secret. It is valid for this wait
// of this call in this turn only.
func (ds *Decisions) keyOf(d *protocol.Decision) protocol.CompletionKey {
	sign := hmac.New(sha256.New, []byte(ds.eng.store.Facts().Secret))
	for _, part := range []string{"completion", string(d.SessionID), string(d.TurnID), string(d.Call.CallID), string(d.ID)} {
		fmt.Fprintf(sign, "%d:%s", len(part), part)
	}
	return protocol.CompletionKey(string(d.ID) + "." + hex.EncodeToString(sign.Sum(nil)[:16]))
}

// waitOf returns the decision that a key completes, answered or not. It returns ErrNoCompletion if
// the key is malformed, has a wrong signature, or belongs to a deleted session.
func (ds *Decisions) waitOf(ctx context.Context, key protocol.CompletionKey) (protocol.Decision, error) {
	unknown := fmt.Errorf("key %.40q: %w", key, ErrNoCompletion)
	id, _, signed := strings.Cut(string(key), ".")
	if !signed {
		return protocol.Decision{}, unknown
	}
	d, err := ds.eng.store.Decision(ctx, protocol.DecisionID(id))
	switch {
	case isMissing(err), err == nil && (d.Kind != protocol.DecisionCompletion || !hmac.Equal([]byte(ds.keyOf(&d)), []byte(key))):
		return protocol.Decision{}, unknown
	case err != nil:
		return protocol.Decision{}, err
	}
	return d, nil
}

// deferCall commits the decision that waits for the completion, and stores it in the call. Without
// a deadline of its own, the wait lasts defaultDeferral.
func (a *asks) deferCall(s *toolCall, how protocol.Deferral) error {
	wait := defaultDeferral
	if how.DeadlineMs > 0 {
		wait = time.Duration(min(how.DeadlineMs, maxDeferral.Milliseconds())) * time.Millisecond
	}
	d := a.decision(protocol.Decision{
		Kind: protocol.DecisionCompletion, ArgsHash: protocol.DigestOf(s.Args), Default: protocol.ChooseUnavailable, Deferral: &how,
		Prompt: fmt.Sprintf("The tool %s is waiting for its completion.", s.Name), Choices: []protocol.DecisionChoice{},
	}, s.ToolCall, wait)
	open, err := onTurnState(a.turnStore, func(ctx context.Context, st *state) (*decision.Open, error) {
		c := a.change(st)
		open := st.decisions.Ask(c, d)
		if err := a.commit(ctx, st, c); err != nil {
			return nil, err
		}
		return open, nil
	})
	s.awaited = open
	return err
}

// restoreDeferral finds the wait that a call began in an earlier run of the daemon, if there is
// one.
func (a *asks) restoreDeferral(s *toolCall) error {
	d, ok := a.earlier[decision.Key{Kind: protocol.DecisionCompletion, Call: s.CallID}]
	if !ok || s.reply != nil {
		return nil
	}
	open, err := onTurnState(a.turnStore, func(ctx context.Context, st *state) (*decision.Open, error) {
		if open := st.decisions.Find(d.ID); open != nil {
			return open, nil
		}
		return st.decisions.fetchAnswered(ctx, d.ID)
	})
	s.awaited = open
	return err
}

// park commits that a call has returned and now waits. From then on it is not called again, even
// after a crash.
func (a *asks) park(s *toolCall) error {
	s.parked = true
	return a.keep(s.effectRow(a.turn, s.row()))
}

// awaitPending handles a tool result that says the call is pending: it waits for the completion. A
// tool that did not declare this, or that took no key, gets a failure instead.
func (m *callMaker) awaitPending(ctx context.Context, s *toolCall) outcome {
	var code, text string
	switch {
	case !s.entry.Terms().MayDefer:
		code, text = "pending_not_declared", "the tool returned a pending result, but does not declare mayDefer"
	case s.awaited == nil:
		code, text = "pending_without_key", "the tool returned a pending result, but requested no completion key"
	default:
		a := m.caller.decisions()
		if err := a.park(s); err != nil && !a.suspended() { // after a crash the call still waits, unless it is repeatable
			m.eng.Log.Error("could not store that a call waits for its completion", "turn", a.turn, "call", s.CallID, "error", err)
		}
		return a.completion(ctx, s)
	}
	return outcome{Result: tool.Result{Output: protocol.Fail(protocol.FailInternal, code, text, protocol.FromRuntime)}}
}

// completion waits until a deferred call is completed, its deadline passes, or ctx is done. If the
// turn is cancelled the wait is withdrawn. If the turn is left, the outcome is unknown and the wait
// stays open.
func (a *asks) completion(ctx context.Context, s *toolCall) outcome {
	d := s.awaited
	if err := a.wait(ctx, d); err != nil {
		if !errors.As(err, new(*cancelled)) || a.withdraw(d.ID) != nil {
			return outcome{unknown: true}
		}
		a.traceWait(trace.WaitResolved, d)
	}
	out := a.completionOutput(ctx, s, d)
	s.awaited, s.parked = nil, false // another attempt takes another key
	return outcome{Result: tool.Result{Output: out}}
}

// withdraw answers an open decision with "cancelled". If another answer came first, that one stays.
func (a *asks) withdraw(id protocol.DecisionID) error {
	_, err := onTurnState(a.turnStore, func(ctx context.Context, st *state) (struct{}, error) {
		open := st.decisions.Find(id)
		if open == nil {
			return struct{}{}, nil
		}
		answer := protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:turn", AtMs: now()}
		return struct{}{}, st.decisions.resolve(ctx, open, answer, nil)
	})
	return err
}

// completionOutput turns the end of a wait into the output of the call. If the wait was cancelled,
// it also asks the tool to cancel its work, when the deferral requested that.
func (a *asks) completionOutput(ctx context.Context, s *toolCall, d *decision.Open) (out protocol.ToolOutput) {
	switch d.Answer.Choice {
	case protocol.ChooseAnswer:
		if err := json.Unmarshal(d.Answer.Value, &out); err != nil {
			return protocol.Fail(protocol.FailInternal, "completion_unreadable", err.Error(), protocol.FromRuntime)
		}
		return tool.Tidy(out)
	case protocol.ChooseCancelled:
		if d.Deferral.OnCancel == protocol.CancelWork {
			a.cancelWork(ctx, s, a.eng.Decisions.keyOf(&d.Decision))
		}
		out = protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn was cancelled before the call was completed"}
	default:
		s.overdue = d.Deferral.OnTimeout == protocol.TimeoutFailsTurn
		out = protocol.Fail(protocol.FailTimeout, "completion_timeout", "the call was not completed before its deadline", protocol.FromRuntime)
	}
	if !s.parked { // lashd was interrupted between the key and the return of the call
		out = protocol.ToolOutput{Status: protocol.OutputUnknown, Text: out.Text + "; it is unknown whether its work had started"}
	}
	return out
}

// completeRest ends the waits that an earlier run of the daemon began, when the turn is cancelled
// before its calls are resumed.
func (a *asks) completeRest(ctx context.Context, calls []*toolCall) {
	for _, s := range calls {
		if !s.resultLost || s.reply != nil || a.restoreDeferral(s) != nil || s.awaited == nil {
			continue
		}
		if got := a.completion(ctx, s); !got.unknown {
			s.answer(got.Output)
		}
	}
}

// cancelWork asks the tool to cancel the outside work of a deferred call. The tool gets the time
// limit of a plugin call, even if ctx is done. An error is only logged.
func (a *asks) cancelWork(ctx context.Context, s *toolCall, key protocol.CompletionKey) {
	ctx, cancel := workgroup.PluginContext(context.WithoutCancel(ctx))
	defer cancel()
	call := tool.Invocation{
		SessionID: a.session.id, TurnID: a.turn, CallID: s.CallID, Attempt: s.attempt, Name: s.Name, Args: s.Args,
	}
	done := make(chan error, 1)
	a.eng.group.GoCall(func() {
		defer func() {
			if p := recover(); p != nil {
				done <- a.eng.group.Recovered("tool", s.Name, p)
			}
		}()
		done <- s.entry.CancelWork(ctx, call, key)
	})
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		a.eng.Log.Error("the tool could not cancel the work of a deferred call", "turn", a.turn, "call", s.CallID, "error", err)
	}
}

// OverdueError means that a deferred call missed its deadline and that its tool wants the turn to
// fail then.
type OverdueError struct{ Call protocol.ToolCall }

func (e *OverdueError) Error() string {
	return fmt.Sprintf("call %s of tool %s was not completed before its deadline", e.Call.CallID, e.Call.Name)
}

// checkOverdue returns an OverdueError if one of the calls missed its deadline and must fail the
// turn.
func checkOverdue(calls []*toolCall) error {
	for _, s := range calls {
		if s.overdue {
			return &OverdueError{s.ToolCall}
		}
	}
	return nil
}

// Complete gives a deferred call its output. The key is the authorization, so any client that has
// it may complete the call. The first completion counts; Accepted is false for later ones.
func (ts *Tools) Complete(ctx context.Context, client protocol.ClientID, p *protocol.ToolCompleteParams) (*protocol.ToolCompleteResult, error) {
	if err := param.CheckOutput(&p.Output); err != nil {
		return nil, err
	}
	d, err := ts.eng.Decisions.waitOf(ctx, p.Key)
	if err != nil {
		return nil, err
	}
	out, blobs, err := ts.eng.attachments().Output(ctx, d.SessionID, p.Output)
	if err != nil {
		return receipt.Repeated[protocol.ToolCompleteResult](ctx, ts.eng.store, "tool/complete", p.IdempotencyKey, p, err)
	}
	return mutate(ctx, ts.eng, d.SessionID, "tool/complete", p.IdempotencyKey, p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.ToolCompleteResult, error) {
		open := st.decisions.Find(d.ID)
		if open == nil {
			return &protocol.ToolCompleteResult{Seq: st.row.Seq}, nil
		}
		answer := protocol.DecisionAnswer{Choice: protocol.ChooseAnswer, Value: encode(out), By: string(client), AtMs: now()}
		result := &protocol.ToolCompleteResult{Accepted: true}
		return result, st.decisions.resolve(ctx, open, answer, func(seq protocol.Seq) *persistence.Receipt {
			result.Seq = seq
			return rc.With(result)
		}, blobs...)
	})
}
