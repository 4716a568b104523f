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

// What a person may do with a question of a server, in its words.
const (
	accepted  = "accept"
	declined  = "decline"
	dismissed = "cancel"
)

var errWhose = errors.New("several turns have calls in progress; lashd cannot tell which one the question belongs to")

var errURL = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "lashd did not declare elicitation by URL; ask by form"}

// elicit asks a person what the server wants to know. The question belongs to the call that the server is at work on. A URL to open is
// refused: lashd cannot tell whose it is, and a person would trust it as if it came from lashd.
func (l *life) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	if r.Params.Mode == "url" {
		return nil, errURL
	}
	c, ok := ctx.Value(inflightKey{}).(*inflight)
	if !ok {
		c = l.calls.sole()
	}
	if c == nil || c.Host == nil {
		l.server.warn("asks a person something: " + errWhose.Error())
		return &sdk.ElicitResult{Action: dismissed}, nil
	}
	form, err := json.Marshal(r.Params.RequestedSchema)
	if err != nil || r.Params.RequestedSchema == nil {
		form = nil
	}
	answer, err := l.ask(ctx, c, tool.Question{Prompt: "The MCP server " + l.server.end.label + " asks: " + cut(r.Params.Message, maxMessage), Form: form})
	if err != nil {
		l.server.warn("asks a person something, in vain: " + err.Error())
		return &sdk.ElicitResult{Action: dismissed}, nil
	}
	return elicited(answer)
}

// ask asks a person for a call. The context ends with the call, and with the life.
func (l *life) ask(ctx context.Context, c *inflight, q tool.Question) (protocol.DecisionAnswer, error) {
	ctx, leave := l.bound(ctx)
	defer leave()
	return c.ask(ctx, q)
}

// ask stops the clock of the call while a person is asked.
func (c *inflight) ask(ctx context.Context, q tool.Question) (protocol.DecisionAnswer, error) {
	c.asks.Lock()
	defer c.asks.Unlock()
	if !c.clock.Stop() {
		return protocol.DecisionAnswer{}, errors.New("the call has ended")
	}
	defer c.clock.Reset(c.limit)
	return c.Host.Ask(ctx, q)
}

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
