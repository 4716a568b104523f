package acp

import (
	"context"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// hasForms reports whether the editor can show forms. Without forms, questions are
// asked as a choice of buttons.
func (a *agent) hasForms() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.offers.Elicitation != nil && a.offers.Elicitation.Form != nil
}

// hasPages reports whether the editor can ask a person to open a page.
func (a *agent) hasPages() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.offers.Elicitation != nil && a.offers.Elicitation.Url != nil
}

// form is the request elicitation/create. It replaces the SDK's type, which has no
// session id. A page has an address and an id in place of the schema.
type form struct {
	Mode      string              `json:"mode"`
	SessionID protocol.SessionID  `json:"sessionId"`
	Call      sdk.ToolCallId      `json:"toolCallId"`
	Message   string              `json:"message"`
	Schema    json.RawMessage     `json:"requestedSchema,omitempty"`
	URL       string              `json:"url,omitempty"`
	PageID    protocol.DecisionID `json:"elicitationId,omitempty"`
}

// formOf returns the request for a question in the editor's session. The question may belong to a subagent.
func formOf(d *protocol.Decision, session protocol.SessionID, call sdk.ToolCallId) form {
	f := form{Mode: "form", SessionID: session, Call: call, Message: d.Prompt, Schema: d.Form}
	switch {
	case d.URL != "":
		f.Mode, f.Schema, f.URL, f.PageID = "url", nil, d.URL, d.ID
	case len(f.Schema) == 0:
		f.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return f
}

// formResponse is the answer: Action is accept, decline or cancel, and Content the
// values of an accepted form.
type formResponse struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content"`
}

// elicit shows a question's form in the editor and answers the decision with the
// result. Declining rejects the question. If the request fails or ctx ends, the
// question stays open for another client. Dismissing the form rejects it too,
// unless the user has just cancelled the turn, which ends the question anyway.
func (q *questions) elicit(ctx context.Context, d *protocol.Decision, call sdk.ToolCallId) {
	r, err := sdk.SendRequest[formResponse](q.conn, ctx, sdk.ClientMethodElicitationCreate, formOf(d, q.id, call))
	switch {
	case ctx.Err() != nil:
	case err != nil:
		q.Log.Warn("the editor did not show a question; it stays open", "session", q.id, "decision", d.ID, "error", err)
	case r.Action == "accept" && d.URL != "":
		q.decide(ctx, d, protocol.DecisionRespondParams{Choice: protocol.ChooseOpen})
	case r.Action == "accept":
		q.decide(ctx, d, protocol.DecisionRespondParams{Choice: protocol.ChooseAnswer, Value: r.Content})
	case r.Action != "cancel" || !q.prompts.cancelling():
		q.decide(ctx, d, protocol.DecisionRespondParams{Choice: protocol.ChooseReject})
	}
}

// rejectReason is the button that denies a call and asks for a reason in a form.
const rejectReason sdk.PermissionOptionId = "rejectReason"

// reasonSchema is the form for the reason of a denial.
const reasonSchema = `{"type":"object","properties":{"reason":{"type":"string","title":"Reason","description":"The agent reads it.","maxLength":2000}},"required":["reason"]}`

// reason asks why the user denies a call. It returns "" if the form is not accepted:
// the call is denied in any case.
func (q *questions) reason(ctx context.Context, call sdk.ToolCallId) string {
	p := form{Mode: "form", SessionID: q.id, Call: call, Message: "Why do you deny this call?", Schema: json.RawMessage(reasonSchema)}
	r, err := sdk.SendRequest[formResponse](q.conn, ctx, sdk.ClientMethodElicitationCreate, p)
	var values struct{ Reason string }
	if err != nil || r.Action != "accept" || json.Unmarshal(r.Content, &values) != nil {
		return ""
	}
	return values.Reason
}
