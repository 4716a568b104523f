package plugintest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// benchTools has the tools of the cells of a bench. Only their manifests are used: cells call them through cellHost.
type benchTools struct{}

// Tools implements tool.Provider.
func (benchTools) Tools() []tool.Tool {
	var all []tool.Tool
	for _, name := range []string{"echo", "fail", "wait"} {
		all = append(all, tool.Tool{Manifest: protocol.ToolManifest{
			Name: name, Description: "Does something with a text.",
			Input: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		}})
	}
	return all
}

// Execute implements tool.Provider.
func (benchTools) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

// request is a request of a cell to lashd with its result. Only the field of its kind is set.
type request struct {
	asked   string // "now", "random", or the calls of a batch
	outputs []protocol.ToolOutput
	time    time.Time
	random  []byte
}

// cellHost implements plugin.CellHost for the cells of a bench. It records their requests. With recorded requests it repeats their
// results instead, and refuses any other request, as lashd does when a cell runs again after a crash.
type cellHost struct {
	catalog *tool.Catalog

	mu       sync.Mutex
	requests []request // made so far
	recorded []request // results to repeat; nil: new results
	refused  error     // the first request that differs from the recorded one

	called   chan struct{} // gets a value when a call of a tool begins, if there is room
	messages []*protocol.Message
}

// newCellHost returns a host with a conversation of two messages.
func newCellHost() *cellHost {
	tools := tool.NewRegistry(nil, []tool.Source{{ID: "host", Provider: benchTools{}}}, protocol.ToolState{})
	return &cellHost{catalog: tools.Catalog(), called: make(chan struct{}, 1), messages: []*protocol.Message{
		{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "a question"}}},
		{Role: protocol.RoleAssistant, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "an answer"}}},
	}}
}

// answer records a request. It returns its recorded result, or the one that fresh adds to it.
func (h *cellHost) answer(asked string, fresh func(*request)) (request, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, n := request{asked: asked}, len(h.requests)
	switch {
	case h.recorded == nil:
		fresh(&r)
	case n >= len(h.recorded) || h.recorded[n].asked != asked:
		h.refused = fmt.Errorf("request %d is %s, which differs from the first run", n+1, asked)
		return r, h.refused
	default:
		r = h.recorded[n]
	}
	h.requests = append(h.requests, r)
	return r, nil
}

// asked returns the requests so far.
func (h *cellHost) asked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := []string{}
	for _, r := range h.requests {
		all = append(all, r.asked)
	}
	return all
}

// Tools implements plugin.CellHost.
func (h *cellHost) Tools() []protocol.ToolManifest {
	return h.catalog.Manifests()
}

// Call implements plugin.CellHost. A batch with wait returns when ctx is done, and is not recorded.
func (h *cellHost) Call(ctx context.Context, calls []tool.Request) ([]protocol.ToolOutput, error) {
	select {
	case h.called <- struct{}{}:
	default:
	}
	asked, waits := "", false
	for _, c := range calls {
		asked += c.Name + compact(c.Args)
		waits = waits || c.Name == "wait"
	}
	if waits {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	r, err := h.answer(asked, func(r *request) {
		for _, c := range calls {
			r.outputs = append(r.outputs, output(c))
		}
	})
	return r.outputs, err
}

// output returns the output of a call of echo or fail.
func output(c tool.Request) protocol.ToolOutput {
	var args struct {
		Text string `json:"text"`
	}
	switch err := json.Unmarshal(c.Args, &args); {
	case err != nil:
		return protocol.Fail(protocol.FailExecution, "invalid", "the arguments are invalid", protocol.FromTool)
	case c.Name != "echo":
		return protocol.Fail(protocol.FailExecution, "failed", "it failed on purpose", protocol.FromTool)
	}
	return protocol.Succeed(args.Text)
}

// Now implements plugin.CellHost. The time is years ago, so that another clock shows.
func (h *cellHost) Now(context.Context) (time.Time, error) {
	r, err := h.answer("now", func(r *request) { r.time = time.Unix(1_000_000_000+int64(len(h.requests)), 0) })
	return r.time, err
}

// Random implements plugin.CellHost.
func (h *cellHost) Random(context.Context) ([]byte, error) {
	r, err := h.answer("random", func(r *request) {
		r.random = make([]byte, 32)
		_, _ = rand.Read(r.random) // never fails
	})
	return r.random, err
}

// History implements plugin.CellHost.
func (h *cellHost) History() []*protocol.Message { return h.messages }
