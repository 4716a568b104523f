package protocol

import "encoding/json"

// DecisionKind says what a decision is about.
type DecisionKind string

const (
	DecisionApproval   DecisionKind = "approval"   // may this tool call run?
	DecisionOutcome    DecisionKind = "outcome"    // did this tool call of unknown outcome take effect?
	DecisionQuestion   DecisionKind = "question"   // a question from a tool or an MCP server
	DecisionCompletion DecisionKind = "completion" // not for a person: the tool call waits for tool/complete
)

// DecisionChoice is a possible answer to a decision.
type DecisionChoice string

const (
	ChooseAllowOnce    DecisionChoice = "allowOnce"
	ChooseAllowSession DecisionChoice = "allowSession" // also allows, in this session, calls of the tool with the same arguments, ignoring the varying ones
	ChooseAllowAlways  DecisionChoice = "allowAlways"  // like allowSession, for every session in this workspace
	ChooseReject       DecisionChoice = "reject"
	ChooseHappened     DecisionChoice = "happened"    // the call took effect
	ChooseNotHappened  DecisionChoice = "didNotRun"   // the call had no effect; lashd reports that to the model
	ChooseRunAgain     DecisionChoice = "runAgain"    // run the call again, at the risk that it runs twice
	ChooseTellModel    DecisionChoice = "tellModel"   // report the unknown outcome to the model, which can check for itself
	ChooseAnswer       DecisionChoice = "answer"      // the answer is in value
	ChooseOpen         DecisionChoice = "open"        // the person opens the page at url; the client shows the whole address first, and opens it after this answer
	ChooseCancelled    DecisionChoice = "cancelled"   // the turn ended before an answer
	ChooseUnavailable  DecisionChoice = "unavailable" // an answer is no longer possible
)

// Decision is a stored question that a session waits on. It survives disconnects and restarts. The first answer counts.
type Decision struct {
	ID         DecisionID       `json:"decisionId"`
	SessionID  SessionID        `json:"sessionId"`
	TurnID     TurnID           `json:"turnId,omitempty"`
	Kind       DecisionKind     `json:"kind"`
	Call       *ToolCall        `json:"call,omitempty"`
	ArgsHash   Digest           `json:"argsHash,omitempty"` // of an approval: hash of the arguments that it covers; of a question: identifies the question within its call
	Prompt     string           `json:"prompt"`             // the text of the question
	Varying    []string         `json:"varying,omitempty"`  // of an approval: arguments that allowSession and allowAlways ignore
	Places     []string         `json:"places,omitempty"`   // of an approval: the resolved paths of the call, which the approval covers; empty if unknown
	Form       json.RawMessage  `json:"form,omitempty"`     // of a question: JSON Schema of the answer's value; absent: any value
	URL        string           `json:"url,omitempty"`      // of a question that asks a person to open a page: its address
	Choices    []DecisionChoice `json:"choices"`
	Default    DecisionChoice   `json:"default"` // the answer after the deadline
	OpenedAtMs int64            `json:"openedAtMs"`
	DeadlineMs int64            `json:"deadlineAtMs"`       // ms since 1970; 0: no deadline
	Deferral   *Deferral        `json:"deferral,omitempty"` // of a completion
	Detail     *ApprovalDetail  `json:"detail,omitempty"`   // of an approval: what the call will do, and what an answer may add to its choice
	Answer     *DecisionAnswer  `json:"answer,omitempty"`

	// RemainingMs is the time left until the deadline, in decision/list and session/attach. A client counts down from it, whatever
	// its own clock says. In decision/opened it is absent: there the time left is deadlineAtMs - openedAtMs.
	RemainingMs int64 `json:"remainingMs,omitempty"`
}

// DecisionAnswer is the answer to a decision and its author.
type DecisionAnswer struct {
	Choice DecisionChoice  `json:"choice"`
	Value  json.RawMessage `json:"value,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`   // of allowOnce: the call runs with these arguments instead of its own
	Places []string        `json:"places,omitempty"` // with args: the resolved paths of the call with them, which the answer covers
	Hunks  []int           `json:"hunks,omitempty"`  // of allowOnce: the hunks that were taken; args makes exactly these changes
	Width  *int            `json:"width,omitempty"`  // of allowSession and allowAlways: index into detail.widths; absent: exactly this call
	Reason string          `json:"reason,omitempty"` // of reject, and of hunks that leave out changes: text for the model
	By     string          `json:"by"`               // a client id, deadline, or internal:<subject>
	AtMs   int64           `json:"atMs"`
}
