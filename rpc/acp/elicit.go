package acp

import (
	"context"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// hasForms tells whether the editor can ask for more than a choice.
func (s *session) hasForms() bool {
	s.agent.mu.Lock()
	defer s.agent.mu.Unlock()
	return s.offers.Elicitation != nil && s.offers.Elicitation.Form != nil
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
func (s *session) elicit(ctx context.Context, d *protocol.Decision, call sdk.ToolCallId) {
	schema := d.Form
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	r, err := sdk.SendRequest[filled](s.conn, ctx, sdk.ClientMethodElicitationCreate, form{"form", s.id, call, d.Prompt, schema})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.Log.Warn("the editor did not put a question to anybody; it stays open", "session", s.id, "decision", d.ID, "error", err)
	case r.Action == "accept":
		s.decide(ctx, d, protocol.DecisionRespondParams{Choice: protocol.ChooseAnswer, Value: r.Content})
	case r.Action != "cancel" || !s.cancelling():
		s.decide(ctx, d, protocol.DecisionRespondParams{Choice: protocol.ChooseReject})
	}
}
