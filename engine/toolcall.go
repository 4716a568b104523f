package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

const (
	// cancelGrace is how long a cancelled call may still return a result of its own.
	cancelGrace = 50 * time.Millisecond
	// stopPatience is how long the true result of a call is waited for when the daemon stops: it takes a command five
	// seconds to be killed, and what is not known then is never known.
	stopPatience = 6 * time.Second
)

// execute makes one attempt of a call. A call that was cancelled gets a moment to return by itself. The answer is
// false if the turn is left and the call's result is not known.
func (r *run) execute(ctx context.Context, s *stage) (turn.ToolReply, bool) {
	began := time.Now()
	r.traceCall(TraceToolStarted, s, nil)
	got := r.answered(ctx, s)
	if got.unknown {
		return turn.ToolReply{}, false
	}
	reply := turn.ToolReply{
		CallID: s.call.CallID, Name: s.call.Name, Args: s.replaced(), Control: got.Control, DurationMs: time.Since(began).Milliseconds(),
		Output: got.Output,
	}
	r.afterCall(ctx, s, &reply)
	s.wanted = got.Intents
	r.traceCall(TraceToolCompleted, s, &reply)
	return reply, true
}

// answered is what a call comes to: at once, or with its completion.
func (r *run) answered(ctx context.Context, s *stage) outcome {
	if s.given != nil {
		out := *s.given
		s.given = nil // another attempt calls the tool
		return outcome{Result: tool.Result{Output: out}}
	}
	if s.waits() {
		return r.completion(ctx, s)
	}
	got := r.made(ctx, s)
	switch {
	case got.unknown:
	case got.Pending:
		return r.pending(ctx, s)
	case s.awaited != nil && r.withdraw(s.awaited.ID) == nil:
		s.awaited = nil
	}
	return got
}

// made calls the tool. An output that was taken from elsewhere is what the call comes to, whatever ends it.
func (r *run) made(ctx context.Context, s *stage) outcome {
	limited, cancel := callContext(ctx, s.entry.Terms())
	host := &toolHost{run: r, stage: s, life: limited, began: s.row()}
	s.inner.next, s.asking = 0, 0
	done := make(chan outcome, 1)
	r.eng.goCall(func() { done <- r.invoke(limited, s, host) })
	var got outcome
	select {
	case got = <-done:
	case <-limited.Done():
		got = interrupted(limited, s, done)
	}
	cancel()
	host.end()
	if host.taken != nil {
		return outcome{Result: tool.Result{Output: *host.taken}}
	}
	return got
}

// outcome is a tool's result, or that there is none because the daemon stops.
type outcome struct {
	tool.Result
	unknown bool
}

func callContext(ctx context.Context, c protocol.ToolContract) (context.Context, context.CancelFunc) {
	if c.TimeoutMs > 0 {
		return context.WithTimeout(ctx, time.Duration(c.TimeoutMs)*time.Millisecond)
	}
	return context.WithCancel(ctx)
}

// interrupted is what a call comes to whose context is done. If it does not return, the cause of that decides.
func interrupted(ctx context.Context, s *stage, done <-chan outcome) outcome {
	if got, returned := inTime(ctx, done); returned {
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
		out = protocol.Fail(protocol.FailTimeout, "timeout", "the call took longer than its limit", protocol.FromRuntime)
	default:
		out = protocol.ToolOutput{Status: protocol.OutputUnknown, Text: "The call took longer than its limit and did not stop. Nobody knows what it did or still does."}
	}
	return outcome{Result: tool.Result{Output: out}}
}

// invoke calls the provider. Whatever goes wrong there is the call's
// failure, not the turn's.
func (r *run) invoke(ctx context.Context, s *stage, host *toolHost) (got outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.eng.panicked("tool", s.call.Name, p)
			got.Result = tool.Result{Output: protocol.Fail(protocol.FailInternal, "tool_panicked", fmt.Sprintf("the tool %s crashed", s.call.Name), protocol.FromTool)}
		}
	}()
	call := tool.Invocation{
		SessionID: r.session.id, TurnID: host.turn(), CallID: s.call.CallID, Attempt: s.attempt, Name: s.call.Name, Args: s.call.Args,
		Host: host, Places: s.places(),
	}
	result, err := s.entry.Execute(ctx, call)
	if err != nil {
		result, got.unknown = r.failed(ctx, err)
	}
	got.Result = result
	got.Output = tidy(result.Output)
	if got.Control != nil && len(got.Control.Value) > 0 && !json.Valid(got.Control.Value) {
		got.Control = nil
	}
	got.Control = r.meant(ctx, got.Control)
	return got
}

// failed is the result of a provider's error. One that only says that the daemon stops says nothing of the call.
func (r *run) failed(ctx context.Context, err error) (result tool.Result, unknown bool) {
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

// tidy makes an output one that JSON can hold.
func tidy(out protocol.ToolOutput) protocol.ToolOutput {
	if out.Status == "" {
		out.Status = protocol.OutputSuccess
	}
	out.Intents = nil // that is not the tool's to say
	out.Text = strings.ToValidUTF8(out.Text, "\uFFFD")
	if len(out.Value) > 0 && !json.Valid(out.Value) {
		out.Value = nil
	}
	if out.Failure != nil {
		f := *out.Failure
		f.Message = strings.ToValidUTF8(f.Message, "\uFFFD")
		if len(f.Raw) > 0 && !json.Valid(f.Raw) {
			f.Raw = nil
		}
		out.Failure = &f
	}
	return out
}
