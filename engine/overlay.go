package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

const (
	// clientDeadline is how long a client may take for a call, unless the tool says otherwise.
	clientDeadline = 2 * time.Minute
	// clientReturn is how long a client that went away may take to come back before its calls are settled without it.
	clientReturn = 30 * time.Second
)

// overlay is what a client adds to a session: tools that the client itself runs, and a text for the prompt.
type overlay struct {
	ClientID    protocol.ClientID     `json:"clientId,omitempty"`
	WithoutBase bool                  `json:"withoutBase,omitempty"`
	Tools       []protocol.ClientTool `json:"tools,omitempty"`
	Prompt      string                `json:"prompt,omitempty"`
}

// SetOverlay replaces what a client adds to a session. Setting what is set already changes nothing.
func (e *Engine) SetOverlay(ctx context.Context, client protocol.ClientID, p *protocol.SessionOverlayParams) (*protocol.SessionOverlayResult, error) {
	if err := checkOverlay(p); err != nil {
		return nil, err
	}
	return mutate(ctx, e, p.SessionID, "session/setOverlay", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SessionOverlayResult, error) {
		t, err := st.openTools()
		if err != nil {
			return nil, err
		}
		next := overlay{ClientID: client, Tools: p.Tools, Prompt: p.Prompt, WithoutBase: p.IncludeBaseTools != nil && !*p.IncludeBaseTools}
		if string(encode(next)) == string(encode(st.overlay)) {
			return &protocol.SessionOverlayResult{Tools: t.registry.State(), Seq: st.row.Seq}, nil
		}
		return st.setOverlay(ctx, t, next, rc)
	})
}

func checkOverlay(p *protocol.SessionOverlayParams) error {
	seen := map[string]bool{}
	for i, t := range p.Tools {
		pointer := "/tools/" + itoa(i)
		if t.Name == "" || len(t.Name) > 64 {
			return bad(pointer+"/name", "must have 1 to 64 bytes")
		}
		if seen[t.Name] {
			return bad(pointer+"/name", "%q is there twice", t.Name)
		}
		seen[t.Name] = true
		if err := tool.CheckSchema(t.Input); err != nil {
			return bad(pointer+"/input", "%v", err)
		}
		if t.Replay != "" && t.Replay != protocol.ReplayNever && t.Replay != protocol.ReplaySafe && t.Replay != protocol.ReplayIdempotent {
			return bad(pointer+"/replay", "must be never, safe or idempotent")
		}
		if t.DeadlineMs < 0 {
			return bad(pointer+"/deadlineMs", "must not be negative")
		}
	}
	return nil
}

func (st *state) setOverlay(ctx context.Context, t *toolbox, next overlay, rc receipt) (*protocol.SessionOverlayResult, error) {
	old, before := st.overlay, t.registry.State()
	apply := func(o overlay) {
		st.overlay = o
		t.client.tools.Store(&o.Tools)
		t.registry.SetSources(st.sources(t))
	}
	apply(next)
	after := t.registry.State()
	result := &protocol.SessionOverlayResult{Tools: after, Seq: st.row.Seq + 1}
	c := &persistence.Commit{Receipt: rc.with(result), Component: []persistence.Component{
		{Name: componentOverlay, Body: encode(next)}, {Name: componentTools, Body: encode(after)},
	}}
	if _, err := st.commit(ctx, c, logEvent{Event: protocol.Event{Type: protocol.EventToolsChanged, Tools: &after}}); err != nil {
		apply(old)
		t.registry.Restore(before)
		return nil, err
	}
	st.rebuildCatalog()
	return result, nil
}

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

// clientCall is a call that waits for its client.
type clientCall struct {
	client protocol.ClientID
	acked  bool
	done   chan protocol.ToolOutput // buffered: the first answer counts
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
	defer do(context.WithoutCancel(ctx), c.session.eng, c.session.id, func(_ context.Context, st *state) (struct{}, error) {
		delete(st.calls, call.CallID)
		return struct{}{}, nil
	})
	return c.await(ctx, pending, wait), nil
}

func (c *clientTools) request(ctx context.Context, call tool.Invocation, wait time.Duration) (*clientCall, error) {
	return do(ctx, c.session.eng, c.session.id, func(ctx context.Context, st *state) (*clientCall, error) {
		pending := &clientCall{client: st.overlay.ClientID, done: make(chan protocol.ToolOutput, 1)}
		event := logEvent{Event: protocol.Event{
			Type: protocol.EventToolRequested, TurnID: call.TurnID, ClientID: pending.client, Deadline: now() + wait.Milliseconds(),
			ToolCall: &protocol.ToolCall{CallID: call.CallID, Name: call.Name, Args: call.Args},
		}}
		if _, err := st.commit(ctx, &persistence.Commit{}, event); err != nil {
			return nil, err
		}
		st.calls[call.CallID] = pending
		return pending, nil
	})
}

func (c *clientTools) await(ctx context.Context, pending *clientCall, wait time.Duration) tool.Result {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	lost := c.session.eng.presence.watch(pending.client)
	defer lost.stop()
	select {
	case out := <-pending.done:
		return tool.Result{Output: out}
	case <-deadline.C:
		return c.unanswered(ctx, pending, protocol.FailTimeout, "the client did not answer in time")
	case <-lost.gone:
		return c.unanswered(ctx, pending, protocol.FailUnavailable, "the client that provides the tool is gone")
	case <-ctx.Done():
		return tool.Result{Output: protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the call was cancelled"}}
	}
}

// unanswered is the result of a call whose client said nothing: a failure if it never began, else unknown.
func (c *clientTools) unanswered(ctx context.Context, pending *clientCall, class protocol.FailureClass, text string) tool.Result {
	acked, err := do(context.WithoutCancel(ctx), c.session.eng, c.session.id, func(context.Context, *state) (bool, error) { return pending.acked, nil })
	if err == nil && !acked {
		return tool.Result{Output: protocol.Fail(class, "client_"+string(class), text, protocol.FromTool)}
	}
	return tool.Result{Output: protocol.ToolOutput{Status: protocol.OutputUnknown, Text: text + " after it had begun; nobody knows what became of the call"}}
}

// RespondTool takes a client's answer to tool/requested. The first answer of the client that provides the tool counts.
func (e *Engine) RespondTool(ctx context.Context, client protocol.ClientID, p *protocol.ToolRespondParams) (*protocol.ToolRespondResult, error) {
	if p.Output == nil && !p.Ack {
		return nil, bad("/output", "is required, unless ack is true")
	}
	if p.Output != nil && !slices.Contains([]protocol.OutputStatus{protocol.OutputSuccess, protocol.OutputFailure, protocol.OutputCancelled}, p.Output.Status) {
		return nil, bad("/output/status", "must be success, failure or cancelled")
	}
	return mutate(ctx, e, p.SessionID, "tool/respond", p.Key(), p, func(_ context.Context, st *state, _ receipt) (*protocol.ToolRespondResult, error) {
		call, ok := st.calls[p.CallID]
		if !ok || call.client != client {
			return nil, fmt.Errorf("call %s: %w", p.CallID, ErrNoCall)
		}
		call.acked = true
		if p.Output == nil {
			return &protocol.ToolRespondResult{Accepted: true}, nil
		}
		select {
		case call.done <- *p.Output:
			return &protocol.ToolRespondResult{Accepted: true}, nil
		default:
			return &protocol.ToolRespondResult{}, nil
		}
	})
}

// presence knows which clients have a connection.
type presence struct {
	mu      sync.Mutex
	clients map[protocol.ClientID]*clientState
}

type clientState struct {
	connections int
	watchers    map[*absence]struct{}
	timer       *time.Timer
}

// absence tells that a client has been away for too long.
type absence struct {
	gone chan struct{}
	stop func()
}

// Connected says that a client has one more connection; the returned function that it has one less.
func (e *Engine) Connected(id protocol.ClientID) (disconnected func()) {
	p := &e.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clientLocked(id)
	c.connections++
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	return sync.OnceFunc(func() { p.left(id) })
}

func (p *presence) clientLocked(id protocol.ClientID) *clientState {
	c, ok := p.clients[id]
	if !ok {
		c = &clientState{watchers: map[*absence]struct{}{}}
		p.clients[id] = c
	}
	return c
}

func (p *presence) left(id protocol.ClientID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[id]
	c.connections--
	if c.connections == 0 {
		p.awayLocked(id, c)
	}
}

// awayLocked gives an absent client time to come back before those who wait for it are told.
func (p *presence) awayLocked(id protocol.ClientID, c *clientState) {
	if len(c.watchers) == 0 {
		delete(p.clients, id)
		return
	}
	c.timer = time.AfterFunc(clientReturn, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.clients[id] != c || c.connections > 0 {
			return
		}
		for w := range c.watchers {
			close(w.gone)
		}
		delete(p.clients, id)
	})
}

// watch tells when a client is away for too long. The caller stops watching.
func (p *presence) watch(id protocol.ClientID) *absence {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clientLocked(id)
	w := &absence{gone: make(chan struct{})}
	c.watchers[w] = struct{}{}
	if c.connections == 0 && c.timer == nil {
		p.awayLocked(id, c)
	}
	w.stop = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(c.watchers, w)
		if len(c.watchers) == 0 && c.connections == 0 {
			if c.timer != nil {
				c.timer.Stop()
			}
			if p.clients[id] == c {
				delete(p.clients, id)
			}
		}
	}
	return w
}
