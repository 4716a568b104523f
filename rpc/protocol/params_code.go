package protocol

// CodeStateResult describes how a session runs code cells, and the variables that they have set.
type CodeStateResult struct {
	Driver   string       `json:"driver"`
	Executor string       `json:"executor"` // plugin that runs the code
	Language string       `json:"language"`
	Globals  []CodeGlobal `json:"globals"`         // ordered by name
	Stale    bool         `json:"stale,omitempty"` // a cell is running: globals are the stored ones from before it, without their types
}

// CodeExecuteParams runs a code cell without a model. Without write, the cell calls no tools and its assignments are forgotten.
// With write, its tool calls are judged like those of tool/call, and its variables are stored.
type CodeExecuteParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	Source    string    `json:"source"`
	Write     bool      `json:"write,omitempty"`
}

// CodeExecuteResult is the result of a code cell. An error of the code is part of it.
type CodeExecuteResult struct {
	CellID     CallID           `json:"cellId"`
	Language   string           `json:"language"`
	Result     CodeResult       `json:"result"`
	Calls      []ToolCallRecord `json:"calls"` // the first 128 calls that the cell made, in order; result.moreCalls counts the others
	DurationMs int64            `json:"durationMs"`
	Replayable
}
