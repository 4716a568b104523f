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

// clientDeadline is how long a client may take for a call if the tool sets no deadline.
const clientDeadline = 2 * time.Minute

// clientTools is the tool source for tools that a client runs itself. A call commits a
// tool/requested event; the client answers with tool/respond.
type clientTools struct {
	// session is the session that has the tools.
	session *session
	// tools is the list that the client declared last. It is replaced as a whole; calls read it
	// concurrently.
	tools atomic.Pointer[[]protocol.ClientTool]
}

// Tools implements tool.Provider. Calls are never repeatable unless the client declares otherwise.
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

// clientCall is a call that waits for its client. It belongs to the session's actor. Once removed
// from the overlay, it accepts no answer any more.
type clientCall struct {
	// client is the only client whose answers count.
	client protocol.ClientID
	// host receives the output.
	host *toolHost
	// acked is set once the client has confirmed that it received the call or is working on it.
	acked bool
	// done is closed once the host has the output.
	done chan struct{}
}

// Execute implements tool.Provider. It requests the call and waits for the client's output. If the
// client acknowledged the call but sent no output, the outcome is unknown; otherwise the call
// failed without effect.
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
	// The call accepts no more answers. An answer that arrived before counts, whatever ended the wait.
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

// request commits the tool/requested event and registers the pending call, in one step on the
// actor. It returns errToolWithdrawn if no client provides the tool any more.
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

// errToolWithdrawn means that the overlay with the tool was replaced before the call was requested.
var errToolWithdrawn = errors.New("the client no longer provides the tool")

// await waits until the call is answered, the deadline passes, the client disconnects, or ctx is
// done. It returns a failure class only for the deadline and the disconnect.
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

// Respond stores a client's answer to tool/requested: an acknowledgement or the output. Only the
// client that provides the tool may answer, and its first output counts. Accepted is false for
// later ones.
func (ts *Tools) Respond(ctx context.Context, client protocol.ClientID, p *protocol.ToolRespondParams) (*protocol.ToolRespondResult, error) {
	if p.Output == nil && !p.Ack {
		return nil, param.Bad("/output", "is required, unless ack is true")
	}
	var out protocol.ToolOutput
	var blobs []persistence.Blob
	if p.Output != nil {
		if err := param.CheckOutput(p.Output); err != nil {
			return nil, err
		}
		var err error
		if out, blobs, err = ts.eng.attachments().Output(ctx, p.SessionID, *p.Output); err != nil {
			return receipt.Repeated[protocol.ToolRespondResult](ctx, ts.eng.store, "tool/respond", p.Key(), p, err)
		}
	}
	return mutate(ctx, ts.eng, p.SessionID, "tool/respond", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.ToolRespondResult, error) {
		call, ok := st.overlay.call(p.CallID, client)
		if !ok {
			return nil, fmt.Errorf("call %s: %w", p.CallID, ErrNoCall)
		}
		if p.Output != nil && call.host.output == nil {
			return call.take(ctx, st, out, blobs, rc)
		}
		result := &protocol.ToolRespondResult{Accepted: p.Output == nil}
		if err := st.storeReceipt(ctx, rc, result); err != nil {
			return nil, err
		}
		call.acked = true
		return result, nil
	})
}

// take commits a client's output with its blobs and wakes the call that waits for it. It runs on the actor.
func (call *clientCall) take(ctx context.Context, st *state, out protocol.ToolOutput, blobs []persistence.Blob, rc receipt.Request) (*protocol.ToolRespondResult, error) {
	leave, ok := call.host.keepOpen()
	if !ok {
		return nil, fmt.Errorf("call %s: %w", call.host.call.CallID, ErrNoCall)
	}
	defer leave()
	out = tool.Tidy(out)
	result := &protocol.ToolRespondResult{Accepted: true}
	c := st.change(persistence.Commit{Receipt: rc.With(result), Blobs: blobs})
	call.host.give(c, out)
	if c.Receipt != nil || len(c.Effects)+len(blobs) > 0 {
		if err := st.commit(ctx, c); err != nil {
			return nil, err
		}
	}
	call.acked, call.host.output = true, &out
	close(call.done)
	return result, nil
}
