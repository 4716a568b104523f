package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// clientDeadline is how long a client may take for a call, unless the tool says otherwise.
const clientDeadline = 2 * time.Minute

// clientTools is the source of the tools that a client runs: a call is a durable event and the client's later answer.
type clientTools struct {
	session *session
	tools   atomic.Pointer[[]protocol.ClientTool]
}

// Tools implements tool.Provider.
func (c *clientTools) Tools() []tool.Tool {
	var tools []tool.Tool
	for _, t := range *c.tools.Load() {
		contract := protocol.ToolContract{Replay: protocol.ReplayNever}
		if t.Replay != "" {
			contract.Replay = t.Replay
		}
		tools = append(tools, tool.Tool{Manifest: t.ToolManifest, Contract: contract})
	}
	return tools
}

// clientCall is a call that waits for its client. It belongs to the session's actor; once it is settled, no answer
// counts any more.
type clientCall struct {
	client protocol.ClientID
	host   *toolHost // takes the output
	acked  bool
	done   chan struct{} // closed once the host has the output
}

// Execute implements tool.Provider.
func (c *clientTools) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	wait := clientDeadline
	for _, t := range *c.tools.Load() {
		if t.Name == call.Name && t.DeadlineMs > 0 {
			wait = time.Duration(t.DeadlineMs) * time.Millisecond
		}
	}
	pending, err := c.request(ctx, call, wait)
	if err != nil {
		return tool.Result{}, err
	}
	class, text := c.await(ctx, pending, wait)
	acked, err := do(context.WithoutCancel(ctx), c.session.eng, c.session.id, func(_ context.Context, st *state) (bool, error) {
		st.overlay.removeCall(call.CallID)
		return pending.acked, nil
	})
	// The call is settled: what was answered by now counts, though something else may have ended the wait.
	select {
	case <-pending.done:
		return tool.Result{Output: *pending.host.output}, nil
	default:
	}
	switch {
	case err != nil:
		return tool.Result{}, err
	case class == "":
		return tool.Result{}, context.Cause(ctx)
	case acked:
		return tool.Result{Output: protocol.ToolOutput{Status: protocol.OutputUnknown, Text: text + " after it started the call; the outcome is unknown"}}, nil
	}
	return tool.Result{Output: protocol.Fail(class, "client_"+string(class), text, protocol.FromTool)}, nil
}

func (c *clientTools) request(ctx context.Context, call tool.Invocation, wait time.Duration) (*clientCall, error) {
	return do(ctx, c.session.eng, c.session.id, func(ctx context.Context, st *state) (*clientCall, error) {
		client, ok := st.overlay.provider(call.Name)
		if !ok {
			return nil, errToolWithdrawn
		}
		pending := &clientCall{client: client, host: call.Host.(*toolHost), done: make(chan struct{})}
		c := st.change(persistence.Commit{})
		if call.TurnID != "" {
			c.Fence = persistence.Fence{Turn: call.TurnID, Incarnation: st.eng.incarnation}
		}
		c.TellOf(protocol.Event{
			Type: protocol.EventToolRequested, TurnID: call.TurnID, ClientID: pending.client, Deadline: now() + wait.Milliseconds(),
			ToolCall: &protocol.ToolCall{CallID: call.CallID, Name: call.Name, Args: call.Args},
		})
		c.Then(func() { st.overlay.addCall(call.CallID, pending) })
		return pending, st.commit(ctx, c)
	})
}

var errToolWithdrawn = errors.New("the client no longer provides the tool")

// await returns when the call is answered or will not be; then it says why. Without a reason the context is done.
func (c *clientTools) await(ctx context.Context, pending *clientCall, wait time.Duration) (class protocol.FailureClass, text string) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	lost := c.session.eng.Clients.Watch(pending.client)
	defer lost.Stop()
	select {
	case <-pending.done:
		return "", ""
	case <-deadline.C:
		return protocol.FailTimeout, "the client did not answer in time"
	case <-lost.Gone:
		return protocol.FailUnavailable, "the client that provides the tool disconnected"
	case <-ctx.Done():
		return "", ""
	}
}

// Respond takes a client's answer to tool/requested. The first answer of the client that provides the tool counts.
func (ts *Tools) Respond(ctx context.Context, client protocol.ClientID, p *protocol.ToolRespondParams) (*protocol.ToolRespondResult, error) {
	if p.Output == nil && !p.Ack {
		return nil, param.Bad("/output", "is required, unless ack is true")
	}
	if p.Output != nil {
		if err := param.CheckOutput(p.Output); err != nil {
			return nil, err
		}
	}
	return mutate(ctx, ts.eng, p.SessionID, "tool/respond", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.ToolRespondResult, error) {
		call, ok := st.overlay.call(p.CallID, client)
		if !ok {
			return nil, fmt.Errorf("call %s: %w", p.CallID, ErrNoCall)
		}
		if p.Output != nil && call.host.output == nil {
			return call.take(ctx, st, *p.Output, rc)
		}
		result := &protocol.ToolRespondResult{Accepted: p.Output == nil}
		if err := st.storeReceipt(ctx, rc, result); err != nil {
			return nil, err
		}
		call.acked = true
		return result, nil
	})
}

// take makes a client's output durable, and lets the call that waits for it go on.
func (call *clientCall) take(ctx context.Context, st *state, out protocol.ToolOutput, rc receipt.Request) (*protocol.ToolRespondResult, error) {
	leave, ok := call.host.keepOpen()
	if !ok {
		return nil, fmt.Errorf("call %s: %w", call.host.call.CallID, ErrNoCall)
	}
	defer leave()
	out = tidy(out)
	result := &protocol.ToolRespondResult{Accepted: true}
	c := st.change(persistence.Commit{Receipt: rc.With(result)})
	call.host.give(c, out)
	if c.Receipt != nil || len(c.Effects) > 0 {
		if err := st.commit(ctx, c); err != nil {
			return nil, err
		}
	}
	call.acked, call.host.output = true, &out
	close(call.done)
	return result, nil
}
