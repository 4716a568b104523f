package protocol

import "encoding/json"

// WhenBusy says what to do with an input while a turn is running.
type WhenBusy string

const (
	BusyQueue  WhenBusy = "queue"  // queue it for a later turn; the default
	BusyRefuse WhenBusy = "refuse" // fail with turnActive
	BusySteer  WhenBusy = "steer"  // send it to the running turn, which reads it at its next checkpoint
)

// MaxInput is the maximum size of an input's text and attachments together, in bytes. Upload larger contents with artifact/write and attach
// them by digest.
const MaxInput = 4 << 20

// TurnStartParams sends an input to a session.
type TurnStartParams struct {
	Mutation
	SessionID    SessionID    `json:"sessionId"`
	Input        []InputPart  `json:"input"`
	PluginInputs PluginInputs `json:"pluginInputs,omitempty"` // for the turn that starts with this input
	Command      *CommandCall `json:"command,omitempty"`      // slash command of command/list, for the turn that starts with this input, which is the line that the person wrote
	// Resources of MCP servers, at most 16, for the turn that starts with this input. lashd reads them when the turn starts; if a server fails, the
	// turn ends before the model is asked.
	Resources []ResourceMention `json:"resources,omitempty"`
	WhenBusy  WhenBusy          `json:"whenBusy,omitempty"`
	// For the session's driver. They replace its recorded options, for this turn and later ones.
	TurnOptions *TurnOptions `json:"turnOptions,omitempty"`
	Effort      string       `json:"effort,omitempty"` // reasoning effort of the turn that starts with this input; absent: the session's
	// Maximum number of model calls of the turn that starts with this input, if that is less than the session's budget.
	Iterations int `json:"iterations,omitempty"`
	// JSON Schema, at most 64 KiB. The turn that starts with this input ends with a value that matches it, or fails.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// MaxSchema is the maximum size of the JSON Schema of a turn or a completion, in bytes.
const MaxSchema = 64 << 10

// TurnStartResult confirms that the input is stored. seq is the sequence number of its turn/accepted event.
type TurnStartResult struct {
	TurnID  TurnID    `json:"turnId"`
	InputID InputID   `json:"inputId"`
	State   TurnState `json:"state"`
	Seq     Seq       `json:"seq"`
	Replayable
}

// TurnParams names a turn.
type TurnParams struct {
	TurnID TurnID `json:"turnId"`
}

// TurnWaitParams waits for the end of a turn. Any number of clients may wait.
type TurnWaitParams struct {
	TurnID    TurnID `json:"turnId"`
	TimeoutMs int64  `json:"timeoutMs,omitempty"` // absent: no limit. A timeout returns the report of the unfinished turn
	Follow    bool   `json:"follow,omitempty"`    // also wait for turns that continue this turn in another frame, and return the last report
}

// TurnSteerParams sends an input to a running turn.
type TurnSteerParams struct {
	Mutation
	TurnID   TurnID      `json:"turnId"`
	Input    []InputPart `json:"input"`
	Boundary Boundary    `json:"boundary,omitempty"` // the earliest checkpoint; absent: afterWork
}

// TurnSteerResult confirms that the input is stored. If the turn ends first, the next turn uses the input.
type TurnSteerResult struct {
	InputID InputID `json:"inputId"`
	Seq     Seq     `json:"seq"`
	Replayable
}

// TurnInterruptParams stops a turn.
type TurnInterruptParams struct {
	Mutation
	TurnID TurnID `json:"turnId"`
	Reason string `json:"reason,omitempty"`
}

// InterruptStatus is the result of a request to stop a turn.
type InterruptStatus string

const (
	InterruptRequested InterruptStatus = "requested"
	InterruptAlready   InterruptStatus = "alreadyRequested"
	InterruptTooLate   InterruptStatus = "completionWon" // the turn had already ended
)

// TurnInterruptResult confirms that the request is stored, or that the turn had already ended.
type TurnInterruptResult struct {
	Status InterruptStatus `json:"status"`
	Seq    Seq             `json:"seq"`
	Replayable
}

// TurnListParams lists the turns of a session, newest first.
type TurnListParams struct {
	SessionID SessionID `json:"sessionId"`
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // 1 to 200; absent: 50
}

// TurnListResult is a page of turns.
type TurnListResult struct {
	Data       []TurnReport `json:"data"`
	NextCursor string       `json:"nextCursor,omitempty"`
}

// TurnTraceParams selects a page of a turn's events.
type TurnTraceParams struct {
	TurnID TurnID `json:"turnId"`
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty"` // 1 to 500; absent: 200
}

// TurnTraceResult is a page of the durable events of a turn, in order: inputs, model calls with tokens and attempts, tool calls,
// decisions, and its end.
type TurnTraceResult struct {
	Turn       TurnReport `json:"turn"`
	Data       []Event    `json:"data"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

// DecisionListParams selects open decisions.
type DecisionListParams struct {
	SessionID SessionID `json:"sessionId,omitempty"` // this session and its subagents; absent: all sessions
}

// DecisionListResult lists open decisions.
type DecisionListResult struct {
	Data []Decision `json:"data"`
}

// DecisionRespondParams answers a decision. Args, hunks, width and reason belong to approvals; detail says which of them a decision
// accepts.
type DecisionRespondParams struct {
	Mutation
	DecisionID DecisionID      `json:"decisionId"`
	Choice     DecisionChoice  `json:"choice"`             // one of the decision's choices
	Value      json.RawMessage `json:"value,omitempty"`    // for the choice answer: a value that matches the decision's form
	ArgsHash   Digest          `json:"argsHash,omitempty"` // the decision's argsHash; required to approve a tool call, ignored otherwise
	Args       json.RawMessage `json:"args,omitempty"`     // with allowOnce: run the call with these arguments instead. They are validated and judged: a denial stays one
	Hunks      []int           `json:"hunks,omitempty"`    // with allowOnce: make only these changes, as indexes over the hunks of all files in order, from 0
	Width      *int            `json:"width,omitempty"`    // with allowSession or allowAlways: index into detail.widths; absent: exactly this call
	Reason     string          `json:"reason,omitempty"`   // with reject, or with hunks that leave out changes: text for the model, at most 8192 bytes
}

// DecisionRespondResult is the answer that counts. won reports whether it is the one you sent.
type DecisionRespondResult struct {
	Answer DecisionAnswer `json:"answer"`
	Won    bool           `json:"won"`
	Seq    Seq            `json:"seq"`
	Replayable
}

// ModelInfo describes a configured model.
type ModelInfo struct {
	Name    string    `json:"name"`            // for session/new
	Title   string    `json:"title,omitempty"` // name for people
	Model   ModelSpec `json:"model"`
	Default bool      `json:"default,omitempty"`
	Price   *Price    `json:"price,omitempty"`   // absent: no price is configured
	Problem *Issue    `json:"problem,omitempty"` // with check: why calls to this model would fail
}

// ModelListParams selects the details of model/list.
type ModelListParams struct {
	Check   bool `json:"check,omitempty"`   // also ask each model's server whether it accepts requests; takes up to five seconds
	Servers bool `json:"servers,omitempty"` // also list the models of servers whose models lashd does not know, such as those on this machine; takes up to five seconds
}

// ModelSetKeyParams gives the daemon an API key that its environment lacks. lashd keeps it in memory only.
type ModelSetKeyParams struct {
	Name   string `json:"name"` // one of keysWanted from initialize, or the name of a provider
	Key    string `json:"key"`
	Forget bool   `json:"forget,omitempty"` // forget the key that a client gave before; key must be empty
}

// ModelListResult lists the configured models.
type ModelListResult struct {
	Data []ModelInfo `json:"data"`
}

// CompletionParams makes one model call outside any turn. It has either text or messages.
type CompletionParams struct {
	Mutation
	SessionID  SessionID         `json:"sessionId,omitempty"` // session that records its usage
	Model      string            `json:"model,omitempty"`
	Effort     string            `json:"effort,omitempty"` // one of the model's reasoning efforts; absent: the model's own setting
	System     string            `json:"system,omitempty"`
	Text       string            `json:"text,omitempty"`     // a single message of the user
	Messages   []Message         `json:"messages,omitempty"` // a whole conversation
	Generation GenerationOptions `json:"generation,omitzero"`
	Schema     json.RawMessage   `json:"schema,omitempty"` // JSON Schema of the value that the model replies with; at most 64 KiB
	Label      string            `json:"label,omitempty"`  // source in the usage ledger; absent: completion
}

// Conversation returns the messages of the request; a text is a message of the user.
func (p *CompletionParams) Conversation() []*Message {
	if p.Text != "" {
		return []*Message{{Role: RoleUser, Parts: []Part{{Kind: PartText, Text: p.Text}}}}
	}
	all := make([]*Message, len(p.Messages))
	for i := range p.Messages {
		all[i] = &p.Messages[i]
	}
	return all
}

// CompletionResult is the model's reply.
type CompletionResult struct {
	Message Message         `json:"message"`
	Text    string          `json:"text"`
	Value   json.RawMessage `json:"value,omitempty"`   // the value, if the request has a schema and the reply matches it
	Problem string          `json:"problem,omitempty"` // why the reply has no value, if the request has a schema
	Stop    StopReason      `json:"stop"`
	Call    CallRecord      `json:"call"`
	Replayable
}

// UsageReadParams selects a usage ledger. The ledger of a session includes its subagents under their labels. Without a session, the
// result covers all sessions and counts each call once.
type UsageReadParams struct {
	SessionID SessionID `json:"sessionId,omitempty"`
}

// UsageReadResult is token usage by source and model.
type UsageReadResult struct {
	Data  []UsageRow `json:"data"`
	Total Usage      `json:"total"`
}

// DebugPromptParams selects a session and an optional input for the prompt preview.
type DebugPromptParams struct {
	SessionID SessionID   `json:"sessionId"`
	Input     []InputPart `json:"input,omitempty"`
}

// DebugPromptResult is the exact request of the session's next model call, before the adapter encodes it. Issues list what is
// missing.
type DebugPromptResult struct {
	Model    ModelSpec         `json:"model"`
	System   string            `json:"system"`
	Tools    []ToolManifest    `json:"tools"`
	Messages []Message         `json:"messages"`
	Options  GenerationOptions `json:"options"`
	Body     json.RawMessage   `json:"body,omitempty"` // the encoded request; absent if the adapter cannot preview it
	// Plugins whose part is missing. They failed, with the code that the turn would fail with. During a turn or a command, lashd does
	// not call them; the code is not_asked.
	Issues []Issue `json:"issues,omitempty"`
}
