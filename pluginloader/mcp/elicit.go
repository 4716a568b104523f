package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// errURL rejects questions that ask the user to open a URL.
var errURL = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "lashd did not declare elicitation by URL; ask by form"}

// elicit asks the user a question of the server. The question belongs to the call that the server
// is working on. Requests to open a URL are rejected, because users would trust such a URL as if it
// came from lashd.
func (l *life) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	if r.Params.Mode == "url" {
		return nil, errURL
	}
	c, ok := ctx.Value(inflightKey{}).(*inflight)
	if !ok {
		c = l.calls.sole()
	}
	if c == nil || c.Host == nil {
		l.server.warn("cancelled its question: " + errWhose.Error())
		return &sdk.ElicitResult{Action: dismissed}, nil
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

// ask asks the user in the context of a call. The question is withdrawn when the call or the
// connection ends.
func (l *life) ask(ctx context.Context, c *inflight, q tool.Question) (protocol.DecisionAnswer, error) {
	ctx, leave := l.bound(ctx)
	defer leave()
	return c.ask(ctx, q)
}

// ask asks the user and stops the call's clock until the answer, because users may take long. After
// that the call has its whole limit again. Calls of ask for one call wait for each other.
func (c *inflight) ask(ctx context.Context, q tool.Question) (protocol.DecisionAnswer, error) {
	c.asks.Lock()
	defer c.asks.Unlock()
	if !c.clock.Stop() {
		return protocol.DecisionAnswer{}, errors.New("the call has ended")
	}
	defer c.clock.Reset(c.limit)
	return c.Host.Ask(ctx, q)
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
