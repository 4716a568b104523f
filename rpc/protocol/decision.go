package protocol

import "encoding/json"

// DecisionKind is what a person is asked.
type DecisionKind string

const (
	DecisionApproval   DecisionKind = "approval"   // may this tool call run?
	DecisionOutcome    DecisionKind = "outcome"    // what became of this call?
	DecisionQuestion   DecisionKind = "question"   // anything else
	DecisionCompletion DecisionKind = "completion" // no person is asked: the call waits for tool/complete with the key that its tool took
)

// DecisionChoice is an answer that a decision offers.
type DecisionChoice string

const (
	ChooseAllowOnce    DecisionChoice = "allowOnce"
	ChooseAllowSession DecisionChoice = "allowSession" // and, in this session, other calls of the tool with these arguments, apart from those that vary
	ChooseAllowAlways  DecisionChoice = "allowAlways"  // likewise, in every session of this workspace
	ChooseReject       DecisionChoice = "reject"
	ChooseHappened     DecisionChoice = "happened"    // it took effect
	ChooseNotHappened  DecisionChoice = "didNotRun"   // it took no effect; the model is told so
	ChooseRunAgain     DecisionChoice = "runAgain"    // a person takes the risk of a second execution
	ChooseTellModel    DecisionChoice = "tellModel"   // nobody knows; the model looks for itself
	ChooseAnswer       DecisionChoice = "answer"      // Value holds it
	ChooseCancelled    DecisionChoice = "cancelled"   // the turn ended before anyone answered
	ChooseUnavailable  DecisionChoice = "unavailable" // nobody can answer any more
)

// Decision is a durable question to a person. It outlives clients and restarts; the first answer counts.
type Decision struct {
	ID         DecisionID       `json:"decisionId"`
	SessionID  SessionID        `json:"sessionId"`
	TurnID     TurnID           `json:"turnId,omitempty"`
	Kind       DecisionKind     `json:"kind"`
	Call       *ToolCall        `json:"call,omitempty"`
	ArgsHash   Digest           `json:"argsHash,omitempty"` // an approval is good for exactly these arguments; of a question: which one of its call it is
	Prompt     string           `json:"prompt"`             // the question, for a person
	Varying    []string         `json:"varying,omitempty"`  // of an approval: arguments that allowSession and allowAlways do not look at
	Places     []string         `json:"places,omitempty"`   // of an approval: where paths of the call lead, which it holds for; empty where nobody can tell
	Form       json.RawMessage  `json:"form,omitempty"`     // of a question: JSON Schema of the value of an answer; absent: any value
	Choices    []DecisionChoice `json:"choices"`
	Default    DecisionChoice   `json:"default"` // what a passed deadline means
	OpenedAtMs int64            `json:"openedAtMs"`
	DeadlineMs int64            `json:"deadlineAtMs"`       // wall-clock time; 0: none
	Deferral   *Deferral        `json:"deferral,omitempty"` // of a completion
	Answer     *DecisionAnswer  `json:"answer,omitempty"`
}

// DecisionAnswer is who answered a decision, and how.
type DecisionAnswer struct {
	Choice DecisionChoice  `json:"choice"`
	Value  json.RawMessage `json:"value,omitempty"`
	By     string          `json:"by"` // a client id, deadline, or internal:<subject>
	AtMs   int64           `json:"atMs"`
}
