package mcp

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Answers to a server's question in the words of MCP.
const (
	accepted  = "accept"
	declined  = "decline"
	dismissed = "cancel"
)

// errWhose rejects a question that cannot be assigned to a turn.
var errWhose = errors.New("several turns have calls in progress; lashd cannot tell which one the question belongs to")

// elicit asks the user a question of the server. The question belongs to the call that the server
// is working on.
func (l *life) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	c := l.asker(ctx)
	if c == nil {
		l.server.warn("cancelled its question: " + errWhose.Error())
		return &sdk.ElicitResult{Action: dismissed}, nil
	}
	if r.Params.Mode == "url" {
		return l.openPage(ctx, c, r.Params)
	}
	form, err := json.Marshal(r.Params.RequestedSchema)
	if err != nil || r.Params.RequestedSchema == nil {
		form = nil
	}
	answer, err := l.ask(ctx, c, tool.Question{Prompt: "The MCP server " + l.server.end.label + " asks: " + cut(r.Params.Message, maxMessage), Form: form})
	if err != nil {
		l.server.warn("its question got no answer: " + err.Error())
		return &sdk.ElicitResult{Action: dismissed}, nil
	}
	return elicited(answer)
}

// asker returns the call in which the server asks for something; nil: lashd cannot tell.
func (l *life) asker(ctx context.Context) *inflight {
	c, ok := ctx.Value(inflightKey{}).(*inflight)
	if !ok {
		c = l.calls.sole()
	}
	if c == nil || c.Host == nil {
		return nil
	}
	return c
}

// ask asks the user in the context of a call. The question is withdrawn when the call or the
// connection ends.
func (l *life) ask(ctx context.Context, c *inflight, q tool.Question) (protocol.DecisionAnswer, error) {
	ctx, leave := l.bound(ctx)
	defer leave()
	return c.ask(ctx, q)
}

// ask asks the user while the call's clock stops.
func (c *inflight) ask(ctx context.Context, q tool.Question) (answer protocol.DecisionAnswer, err error) {
	err = c.paused(func() error {
		answer, err = c.Host.Ask(ctx, q)
		return err
	})
	return answer, err
}

// paused runs f, which waits for a user, and stops the call's clock until it returns, because users may take long. After that the call
// has its whole limit again. Calls of paused for one call wait for each other.
func (c *inflight) paused(f func() error) error {
	c.asks.Lock()
	defer c.asks.Unlock()
	if !c.clock.Stop() {
		return errors.New("the call has ended")
	}
	defer c.clock.Reset(c.limit)
	return f()
}

// elicited converts the user's decision. Anything other than an answer or a rejection counts as
// cancelled.
func elicited(a protocol.DecisionAnswer) (*sdk.ElicitResult, error) {
	switch a.Choice {
	case protocol.ChooseAnswer:
		out := &sdk.ElicitResult{Action: accepted}
		return out, json.Unmarshal(a.Value, &out.Content)
	case protocol.ChooseReject:
		return &sdk.ElicitResult{Action: declined}, nil
	}
	return &sdk.ElicitResult{Action: dismissed}, nil
}
