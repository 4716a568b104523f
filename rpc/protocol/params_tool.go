package protocol

import (
	"encoding/json"
)

// ToolListResult lists every tool of the session, whether or not the model sees it.
type ToolListResult struct {
	Data       []ToolRecord `json:"data"`
	Generation int64        `json:"generation"`
}

// ToolApplyStateParams replaces all tool settings. It fails if state.generation is not current. Tools that the state omits
// disappear until the next tool/refresh. To remove a tool permanently, include it with member set to false.
type ToolApplyStateParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	State     ToolState `json:"state"`
}

// ToolSetMembershipParams adds tools to the model's catalog (true) or removes them (false).
type ToolSetMembershipParams struct {
	Mutation
	SessionID  SessionID       `json:"sessionId"`
	Generation *int64          `json:"generation,omitempty"` // expected current generation; absent: any
	Members    map[string]bool `json:"members"`
}

// ToolSetAvailabilityParams sets how tools are offered to the model. An absent availability removes an earlier setting.
type ToolSetAvailabilityParams struct {
	Mutation
	SessionID    SessionID        `json:"sessionId"`
	Generation   *int64           `json:"generation,omitempty"` // expected current generation; absent: any
	Names        []string         `json:"names"`
	Availability ToolAvailability `json:"availability,omitempty"`
}

// ToolStateResult holds the tool settings of a session.
type ToolStateResult struct {
	State ToolState `json:"state"`
	Seq   Seq       `json:"seq"`
	Replayable
}

// ToolCallParams runs a tool without a model. The session's approval rules apply.
type ToolCallParams struct {
	Mutation
	SessionID SessionID       `json:"sessionId"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args,omitempty"`
	Tell      bool            `json:"tell,omitempty"` // the model reads the call and its output at its next step
}

// ToolCallResult is the result of a tool call.
type ToolCallResult struct {
	CallID     CallID     `json:"callId"`
	Output     ToolOutput `json:"output"`
	DurationMs int64      `json:"durationMs"`
	Replayable
}

// ToolRespondParams is a client's response to tool/requested. With ack, the client reports that it has begun. If the client then
// disappears, the call has an unknown outcome instead of a failure.
type ToolRespondParams struct {
	Mutation
	SessionID SessionID   `json:"sessionId"`
	CallID    CallID      `json:"callId"`
	Ack       bool        `json:"ack,omitempty"`
	Output    *ToolOutput `json:"output,omitempty"`
}

// ToolRespondResult reports whether lashd accepted the response.
type ToolRespondResult struct {
	Accepted bool `json:"accepted"`
	Replayable
}

// ToolCompleteParams completes a pending tool call. The tool received the key.
type ToolCompleteParams struct {
	Mutation
	Key    CompletionKey `json:"key"`
	Output ToolOutput    `json:"output"`
}

// ToolCompleteResult reports whether lashd accepted the completion. It accepts the first one while the call is pending.
type ToolCompleteResult struct {
	Accepted bool `json:"accepted"`
	Seq      Seq  `json:"seq"`
	Replayable
}
