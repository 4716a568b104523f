package acp

import (
	"context"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// hasForms tells whether the editor can ask for more than a choice.
func (a *agent) hasForms() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.offers.Elicitation != nil && a.offers.Elicitation.Form != nil
}

// form is the protocol's request to fill one in. The SDK's cannot say of which session it is.
type form struct {
	Mode      string             `json:"mode"`
	SessionID protocol.SessionID `json:"sessionId"`
	Call      sdk.ToolCallId     `json:"toolCallId"`
	Message   string             `json:"message"`
	Schema    json.RawMessage    `json:"requestedSchema"`
}

// filled is the answer to it.
type filled struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content"`
}

// elicit has the person fill in the form of a question, and passes that on.
func (q *questions) elicit(ctx context.Context, d *protocol.Decision, call sdk.ToolCallId) {
	schema := d.Form
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	r, err := sdk.SendRequest[filled](q.conn, ctx, sdk.ClientMethodElicitationCreate, form{"form", q.id, call, d.Prompt, schema})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		q.Log.Warn("the editor did not show a question; it stays open", "session", q.id, "decision", d.ID, "error", err)
	case r.Action == "accept":
		q.decide(ctx, d, protocol.DecisionRespondParams{Choice: protocol.ChooseAnswer, Value: r.Content})
	case r.Action != "cancel" || !q.prompts.cancelling():
		q.decide(ctx, d, protocol.DecisionRespondParams{Choice: protocol.ChooseReject})
	}
}
