package protocol

import (
	"encoding/json"
)

// ToolListResult is the catalog: every tool of the session, members or not.
type ToolListResult struct {
	Data       []ToolRecord `json:"data"`
	Generation int64        `json:"generation"`
}

// ToolApplyStateParams replaces all settings, if the generation is still current. Tools that the state does not name are
// left out until their source is asked again; to switch one off for good, say that it is no member.
type ToolApplyStateParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	State     ToolState `json:"state"`
}

// ToolSetMembershipParams says which tools the model may call.
type ToolSetMembershipParams struct {
	Mutation
	SessionID  SessionID       `json:"sessionId"`
	Generation *int64          `json:"generation,omitempty"` // absent: whatever is current
	Members    map[string]bool `json:"members"`
}

// ToolSetAvailabilityParams sets how far tools are open to the model; without an availability, it takes that back.
type ToolSetAvailabilityParams struct {
	Mutation
	SessionID    SessionID        `json:"sessionId"`
	Generation   *int64           `json:"generation,omitempty"` // absent: whatever is current
	Names        []string         `json:"names"`
	Availability ToolAvailability `json:"availability,omitempty"`
}

// ToolStateResult is the state of a session's tools.
type ToolStateResult struct {
	State ToolState `json:"state"`
	Seq   Seq       `json:"seq"`
	Replayable
}

// ToolCallParams runs a tool without a model. The session's approval rules hold.
type ToolCallParams struct {
	Mutation
	SessionID SessionID       `json:"sessionId"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args,omitempty"`
}

// ToolCallResult is what a tool call came to.
type ToolCallResult struct {
	CallID     CallID     `json:"callId"`
	Output     ToolOutput `json:"output"`
	DurationMs int64      `json:"durationMs"`
	Replayable
}

// ToolRespondParams is a client's answer to tool/requested. Ack says that the client has begun: from then on, a client
// that disappears leaves an unknown outcome behind instead of a failure.
type ToolRespondParams struct {
	Mutation
	SessionID SessionID   `json:"sessionId"`
	CallID    CallID      `json:"callId"`
	Ack       bool        `json:"ack,omitempty"`
	Output    *ToolOutput `json:"output,omitempty"`
}

// ToolRespondResult tells whether this answer counts.
type ToolRespondResult struct {
	Accepted bool `json:"accepted"`
	Replayable
}

// ToolCompleteParams completes a call that answered that it is pending. The key is the one that its tool took.
type ToolCompleteParams struct {
	Mutation
	Key    CompletionKey `json:"key"`
	Output ToolOutput    `json:"output"`
}

// ToolCompleteResult tells whether this completion counts: the first one does, unless the wait was over.
type ToolCompleteResult struct {
	Accepted bool `json:"accepted"`
	Seq      Seq  `json:"seq"`
	Replayable
}
