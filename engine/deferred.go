package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// A call that defers has a decision that its completion answers: so it is durable before anybody has the key, the first
// answer counts, and its deadline outlives the daemon.

const (
	defaultDeferral = 24 * time.Hour
	maxDeferral     = 366 * defaultDeferral
)

// CompletionKey implements tool.Deferrer.
func (h *toolHost) CompletionKey(ctx context.Context, how protocol.Deferral) (protocol.CompletionKey, error) {
	switch {
	case !h.stage.entry.Terms().MayDefer:
		return "", tool.ErrMayNotDefer
	case h.run.owner == nil:
		return "", tool.ErrNoTurn
	}
	_, leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if h.stage.awaited == nil {
		if err := h.run.deferCall(h.stage, how); err != nil {
			return "", err
		}
	}
	return h.run.eng.keyOf(&h.stage.awaited.Decision), nil
}

// deferCall makes the wait for a completion durable.
func (r *run) deferCall(s *stage, how protocol.Deferral) error {
	wait := defaultDeferral
	if how.DeadlineMs > 0 {
		wait = time.Duration(min(how.DeadlineMs, maxDeferral.Milliseconds())) * time.Millisecond
	}
	d := r.decision(protocol.Decision{
		Kind: protocol.DecisionCompletion, ArgsHash: protocol.DigestOf(s.call.Args), Default: protocol.ChooseUnavailable, Deferral: &how,
		Prompt: fmt.Sprintf("The tool %s waits for its completion.", s.call.Name), Choices: []protocol.DecisionChoice{},
	}, s.call, wait)
	open, err := ask(r, func(ctx context.Context, st *state) (*openDecision, error) {
		c := st.turnChange(r)
		open := st.decisionsIn(c).ask(c, d)
		if err := st.commitTurn(ctx, r, c); err != nil {
			return nil, err
		}
		return open, nil
	})
	s.awaited = open
	return err
}

// recallDeferral finds the key that an earlier run of the daemon took for a call.
func (r *run) recallDeferral(s *stage) error {
	d, ok := r.asked[asking{kind: protocol.DecisionCompletion, call: s.call.CallID}]
	if !ok || s.reply != nil {
		return nil
	}
	open, err := ask(r, func(ctx context.Context, st *state) (*openDecision, error) {
		if open := st.decisions[d.ID]; open != nil {
			return open, nil
		}
		return st.answeredDecision(ctx, d.ID)
	})
	s.awaited = open
	return err
}

// waits tells whether a call that an earlier run of the daemon began is not made again, because its completion decides.
func (s *stage) waits() bool { return s.awaited != nil && (s.parked || !s.repeatable()) }

// park makes durable that a call has returned and waits: from then on it is not made again.
func (r *run) park(s *stage) error {
	s.parked = true
	row := r.callRow(s)
	_, err := ask(r, func(ctx context.Context, st *state) (struct{}, error) {
		c := st.turnChange(r)
		c.Effects = append(c.Effects, row)
		return struct{}{}, st.commitTurn(ctx, r, c)
	})
	return err
}

// pending is the outcome of a call that says that it is not done.
func (r *run) pending(ctx context.Context, s *stage) outcome {
	var code, text string
	switch {
	case !s.entry.Terms().MayDefer:
		code, text = "pending_not_declared", "the tool answered that it is pending, but does not declare that it may"
	case s.awaited == nil:
		code, text = "pending_without_key", "the tool answered that it is pending, but took no completion key"
	default:
		if err := r.park(s); err != nil && !r.left() { // after a crash the call waits all the same, unless it may be made again
			r.eng.Log.Error("that a call waits is not stored", "turn", r.id, "call", s.call.CallID, "error", err)
		}
		return r.completion(ctx, s)
	}
	return outcome{Result: tool.Result{Output: protocol.Fail(protocol.FailInternal, code, text, protocol.FromRuntime)}}
}

// completion waits for the completion of a call.
func (r *run) completion(ctx context.Context, s *stage) outcome {
	d := s.awaited
	r.trace(TraceWaitParked, tracedWait{Decision: d.ID, Kind: d.Kind, CallID: s.call.CallID})
	select {
	case <-d.done:
	case <-ctx.Done():
		if !errors.As(context.Cause(ctx), new(*cancelled)) || r.withdraw(d.ID) != nil {
			return outcome{unknown: true}
		}
	}
	r.trace(TraceWaitResolved, tracedWait{Decision: d.ID, Kind: d.Kind, CallID: s.call.CallID, Choice: d.Answer.Choice})
	out := r.completed(ctx, s, d)
	s.awaited, s.parked = nil, false // another attempt takes another key
	return outcome{Result: tool.Result{Output: out}}
}

// withdraw ends the wait for an answer or a completion, unless it came first.
func (r *run) withdraw(id protocol.DecisionID) error {
	_, err := ask(r, func(ctx context.Context, st *state) (struct{}, error) {
		open := st.decisions[id]
		if open == nil {
			return struct{}{}, nil
		}
		answer := protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:turn", AtMs: now()}
		return struct{}{}, st.resolve(ctx, open, answer, nil)
	})
	return err
}

// completed is what the end of a wait means for the call.
func (r *run) completed(ctx context.Context, s *stage, d *openDecision) (out protocol.ToolOutput) {
	switch d.Answer.Choice {
	case protocol.ChooseAnswer:
		if err := json.Unmarshal(d.Answer.Value, &out); err != nil {
			return protocol.Fail(protocol.FailInternal, "completion_unreadable", err.Error(), protocol.FromRuntime)
		}
		return tidy(out)
	case protocol.ChooseCancelled:
		if d.Deferral.OnCancel == protocol.CancelWork {
			r.cancelWork(ctx, s, r.eng.keyOf(&d.Decision))
		}
		out = protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn was cancelled before the call was completed"}
	default:
		s.overdue = d.Deferral.OnTimeout == protocol.TimeoutFailsTurn
		out = protocol.Fail(protocol.FailTimeout, "completion_timeout", "no completion of the call came in time", protocol.FromRuntime)
	}
	if !s.parked { // lashd was interrupted between the key and the return of the call
		out = protocol.ToolOutput{Status: protocol.OutputUnknown, Text: out.Text + "; nobody knows whether it had begun"}
	}
	return out
}

// completeRest ends the waits of calls, where an earlier run of the daemon began them, when the turn is cancelled.
func (r *run) completeRest(ctx context.Context, stages []*stage) {
	for _, s := range stages {
		if !s.began || s.reply != nil || r.recallDeferral(s) != nil || s.awaited == nil {
			continue
		}
		if got := r.completion(ctx, s); !got.unknown {
			s.answer(got.Output)
		}
	}
}

// cancelWork has the tool cancel what it has begun outside. It gets the time of a plugin, whatever the turn's context is.
func (r *run) cancelWork(ctx context.Context, s *stage, key protocol.CompletionKey) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), pluginPatience, ErrSlowPlugin)
	defer cancel()
	call := tool.Invocation{
		SessionID: r.session.id, TurnID: r.id, CallID: s.call.CallID, Attempt: s.attempt, Name: s.call.Name, Args: s.call.Args,
	}
	done := make(chan error, 1)
	r.eng.goCall(func() {
		defer func() {
			if p := recover(); p != nil {
				done <- r.eng.panicked("tool", s.call.Name, p)
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
		r.eng.Log.Error("the work of a call is not cancelled", "turn", r.id, "call", s.call.CallID, "error", err)
	}
}

// OverdueError means that a call was not completed in time, and that its turn ends with that.
type OverdueError struct{ Call protocol.ToolCall }

func (e *OverdueError) Error() string {
	return fmt.Sprintf("no completion of the call %s of %s came in time", e.Call.CallID, e.Call.Name)
}

func overdue(stages []*stage) error {
	for _, s := range stages {
		if s.overdue {
			return &OverdueError{s.call}
		}
	}
	return nil
}

// CompleteTool gives a call that waits its output. The first completion counts.
func (e *Engine) CompleteTool(ctx context.Context, client protocol.ClientID, p *protocol.ToolCompleteParams) (*protocol.ToolCompleteResult, error) {
	if err := checkOutput(&p.Output); err != nil {
		return nil, err
	}
	d, err := e.waitOf(ctx, p.Key)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, e, d.SessionID, "tool/complete", p.IdempotencyKey, p, func(ctx context.Context, st *state, rc receipt) (*protocol.ToolCompleteResult, error) {
		open, ok := st.decisions[d.ID]
		if !ok {
			return &protocol.ToolCompleteResult{Seq: st.row.Seq}, nil
		}
		answer := protocol.DecisionAnswer{Choice: protocol.ChooseAnswer, Value: encode(p.Output), By: string(client), AtMs: now()}
		result := &protocol.ToolCompleteResult{Accepted: true}
		return result, st.resolve(ctx, open, answer, func(seq protocol.Seq) *persistence.Receipt {
			result.Seq = seq
			return rc.with(result)
		})
	})
}
