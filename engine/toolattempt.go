package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lashd/engine/tool"
	"lashd/engine/trace"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

const (
	// cancelGrace is how long a cancelled or timed-out call may still return a result of its own.
	cancelGrace = 50 * time.Millisecond
	// stopTimeout is how long the daemon waits for the result of a call, and for other work, when it stops. A command may
	// take five seconds to be killed, and a result that is not known then is lost.
	stopTimeout = 6 * time.Second
)

// callMaker makes tool calls on behalf of a caller: it runs each attempt, asks the hooks and
// retries. Its methods are safe for several calls at once, each on a goroutine of its own.
type callMaker struct {
	*session
	caller  caller
	hooks   *hooks
	catalog *tool.Catalog
	frame   protocol.FrameID // the caller's frame; empty: none
}

// row returns the journal row of a call in its present state.
func (m *callMaker) row(s *toolCall) persistence.Effect {
	return s.effectRow(m.caller.journalID(), s.row())
}

// callWithRetries makes a call and repeats it if its tool has a retry policy, may be repeated, and
// the failure asks for it. Hooks see every attempt, the projector only the last one. The reply
// lacks its rank among the batch. false means that the turn is suspended and the result unknown; a
// later run decides what to do about the call.
func (m *callMaker) callWithRetries(ctx context.Context, s *toolCall) (turn.ToolReply, bool) {
	began := time.Now()
	for n := 1; ; n++ {
		reply, ok := m.attempt(ctx, s)
		if !ok {
			return reply, false
		}
		wait, again := s.retry(n, &reply.Output)
		if again && pause(ctx, wait) == nil {
			s.attempt++
			continue
		}
		reply.DurationMs = time.Since(began).Milliseconds()
		s.addNested(&reply)
		m.hooks.setShown(ctx, s, &reply)
		m.recordIntents(s, &reply)
		return reply, true
	}
}

// retry reports whether a call is repeated after its n-th attempt, and the wait before. An output
// that would be repeated but for the limit on attempts is marked as exhausted.
func (s *toolCall) retry(n int, out *protocol.ToolOutput) (time.Duration, bool) {
	policy := s.entry.Terms().Retry
	if policy == nil || !s.repeatable() || out.Status != protocol.OutputFailure || out.Failure == nil || !out.Failure.Retry {
		return 0, false
	}
	if n >= policy.Attempts {
		out.Exhausted = true
		return 0, false
	}
	return tool.RetryWait(policy, n, out.Failure.AfterMs), true
}

// attempt makes one attempt of a call and runs the hooks that follow a call. false means that the
// turn is suspended and the result unknown.
func (m *callMaker) attempt(ctx context.Context, s *toolCall) (turn.ToolReply, bool) {
	began := time.Now()
	m.hooks.trace.call(trace.ToolStarted, s, nil)
	got := m.outcomeOf(ctx, s)
	if got.unknown {
		return turn.ToolReply{}, false
	}
	reply := turn.ToolReply{
		CallID: s.CallID, Name: s.Name, Args: s.replaced(), Control: got.Control, DurationMs: time.Since(began).Milliseconds(),
		Output: got.Output,
	}
	s.noteChange(&reply.Output)
	m.hooks.afterCall(ctx, s, &reply)
	s.attemptIntents = got.Intents
	m.hooks.trace.call(trace.ToolCompleted, s, &reply)
	return reply, true
}

// outcomeOf returns the outcome of one attempt. There are three sources: the output that a client
// gave to an earlier daemon, the completion that the call waits for, or else the result of running
// the tool. A tool that returns "pending" turns the call into a wait. If a tool took a completion
// key and then returned a result, the key is withdrawn, unless its completion came first.
func (m *callMaker) outcomeOf(ctx context.Context, s *toolCall) outcome {
	if s.clientOutput != nil {
		out := *s.clientOutput
		s.clientOutput = nil // another attempt runs the tool
		return outcome{Result: tool.Result{Output: out}}
	}
	if s.awaitsCompletion() {
		return m.caller.decisions().completion(ctx, s)
	}
	got := m.callTool(ctx, s)
	switch {
	case got.unknown:
	case got.Pending:
		return m.awaitPending(ctx, s)
	case s.awaited != nil && m.caller.decisions().withdraw(s.awaited.ID) == nil:
		s.awaited = nil
	}
	return got
}

// callTool runs the tool on a goroutine of its own, within the timeout of its contract. If a client
// completed the call while it ran, that output is the outcome, no matter how the tool ended. A tool
// that ignores its context is left behind: its goroutine goes on, its result is dropped. callTool
// returns once the call no longer uses the turn.
func (m *callMaker) callTool(ctx context.Context, s *toolCall) outcome {
	limited, cancel := callContext(ctx, s.entry.Terms())
	host := &toolHost{maker: m, call: s, life: limited, startedRow: s.row()}
	s.inner.next, s.questionsAsked = 0, 0
	done := make(chan outcome, 1)
	m.eng.group.GoCall(func() { done <- m.runTool(limited, s, host) })
	var got outcome
	select {
	case got = <-done:
	case <-limited.Done():
		got = interrupted(limited, s, done)
	}
	cancel()
	host.end()
	if host.output != nil {
		return outcome{Result: tool.Result{Output: *host.output}}
	}
	return got
}

// outcome is the result of an attempt. unknown means that the daemon stops and the tool did not
// return in time.
type outcome struct {
	tool.Result
	unknown bool
}

// callContext returns the context of one attempt, with the timeout of the tool's contract.
func callContext(ctx context.Context, c protocol.ToolContract) (context.Context, context.CancelFunc) {
	if c.TimeoutMs > 0 {
		return context.WithTimeout(ctx, time.Duration(c.TimeoutMs)*time.Millisecond)
	}
	return context.WithCancel(ctx)
}

// interrupted returns the outcome of a call whose context is done. The tool may still return a
// result within a grace period. Otherwise the cause decides: unknown if the daemon stops,
// cancelled, a timeout failure for a repeatable call, or an unknown effect for any other call that
// exceeded its limit.
func interrupted(ctx context.Context, s *toolCall, done <-chan outcome) outcome {
	if got, returned := withinGrace(ctx, done); returned {
		return got
	}
	cause := context.Cause(ctx)
	var out protocol.ToolOutput
	switch {
	case errors.Is(cause, errStopped):
		return outcome{unknown: true}
	case !errors.Is(cause, context.DeadlineExceeded):
		out = protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the call was cancelled"}
	case s.repeatable():
		out = protocol.Fail(protocol.FailTimeout, "timeout", "the call exceeded its time limit", protocol.FromRuntime)
	default:
		out = protocol.ToolOutput{Status: protocol.OutputUnknown, Text: "The call exceeded its time limit and did not stop. Its effects are unknown, and it may still be running."}
	}
	return outcome{Result: tool.Result{Output: out}}
}

// withinGrace waits for a result until ctx is done and a grace period has passed: cancelGrace, or
// stopTimeout if the daemon stops. It reports whether a result came. A result that is ready at the
// end of the period counts.
func withinGrace[T any](ctx context.Context, done <-chan T) (v T, returned bool) {
	select {
	case v = <-done:
		return v, true
	case <-ctx.Done():
	}
	moment := cancelGrace
	if errors.Is(context.Cause(ctx), errStopped) {
		moment = stopTimeout
	}
	grace := time.NewTimer(moment)
	defer grace.Stop()
	select {
	case v = <-done:
		return v, true
	case <-grace.C:
		return ready(done)
	}
}

// runTool calls the tool's provider and cleans its result. An error or panic of the provider fails
// the call, not the turn.
func (m *callMaker) runTool(ctx context.Context, s *toolCall, host *toolHost) (got outcome) {
	defer func() {
		if p := recover(); p != nil {
			m.eng.group.Recovered("tool", s.Name, p)
			got.Result = tool.Result{Output: protocol.Fail(protocol.FailInternal, "tool_panicked", fmt.Sprintf("the tool %s crashed; lashd.log has the details", s.Name), protocol.FromTool)}
		}
	}()
	call := tool.Invocation{
		SessionID: m.session.id, TurnID: m.caller.turnID(), CallID: s.CallID, Attempt: s.attempt, Name: s.Name, Args: s.Args,
		Host: host, Places: s.places(), Shown: s.allowed.shown, Sandbox: s.sandbox(), Network: s.network(), Cwd: m.hooks.judge.cwd,
	}
	result, err := s.entry.Execute(ctx, call)
	if err != nil {
		result, got.unknown = m.failed(ctx, err)
	}
	got.Result = result
	got.Output = m.session.files().Output(ctx, tool.Tidy(result.Output))
	if r := result.Refused; r != nil {
		got.Output.Refusal = s.judged.WithRule(r)
	}
	if got.Control != nil && len(got.Control.Value) > 0 && !json.Valid(got.Control.Value) {
		got.Control = nil
	}
	got.Control = dropNoopSwitch(ctx, m.eng, m.frame, got.Control)
	return got
}

// failed maps a provider's error to a tool result. An error that only reports that the daemon stops
// leaves the result unknown.
func (m *callMaker) failed(ctx context.Context, err error) (result tool.Result, unknown bool) {
	var out protocol.ToolOutput
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out = protocol.Fail(protocol.FailTimeout, "timeout", err.Error(), protocol.FromTool)
	case cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)):
		if errors.Is(cause, errStopped) {
			return tool.Result{}, true
		}
		out = protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the call was cancelled"}
	default:
		out = protocol.Fail(protocol.FailInternal, "tool_error", err.Error(), protocol.FromTool)
	}
	return tool.Result{Output: out}, false
}
