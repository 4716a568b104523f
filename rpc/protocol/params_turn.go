package protocol

import "encoding/json"

// WhenBusy says what to do with an input while a turn runs.
type WhenBusy string

const (
	BusyQueue  WhenBusy = "queue"  // wait for its own turn; the default
	BusyRefuse WhenBusy = "refuse" // fail with turnActive
	BusySteer  WhenBusy = "steer"  // enter the running turn at its next checkpoint
)

// MaxInput is how many bytes an input's text and attachments have together at most; larger things go through artifacts.
const MaxInput = 4 << 20

// TurnStartParams gives a session an input.
type TurnStartParams struct {
	Mutation
	SessionID    SessionID    `json:"sessionId"`
	Input        []InputPart  `json:"input"`
	PluginInputs PluginInputs `json:"pluginInputs,omitempty"` // for the turn that begins with the input
	WhenBusy     WhenBusy     `json:"whenBusy,omitempty"`
	// For the session's protocol, over those that it has recorded, in this turn and those that follow it.
	TurnOptions *TurnOptions `json:"turnOptions,omitempty"`
}

// TurnStartResult says that the input is durable. Seq is that of its turn/accepted event.
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

// TurnWaitParams waits for the end of a turn, as often and from as many clients as one likes.
type TurnWaitParams struct {
	TurnID    TurnID `json:"turnId"`
	TimeoutMs int64  `json:"timeoutMs,omitempty"` // absent: no limit; then the report of a turn that has not ended
	Follow    bool   `json:"follow,omitempty"`    // wait for the turn that follows in another frame instead, and so on
}

// TurnSteerParams sends an input into a running turn.
type TurnSteerParams struct {
	Mutation
	TurnID   TurnID      `json:"turnId"`
	Input    []InputPart `json:"input"`
	Boundary Boundary    `json:"boundary,omitempty"` // the earliest checkpoint; absent: afterWork
}

// TurnSteerResult says that the input is durable. If the turn ends first, the input gets the next one.
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

// InterruptStatus tells who won.
type InterruptStatus string

const (
	InterruptRequested InterruptStatus = "requested"
	InterruptAlready   InterruptStatus = "alreadyRequested"
	InterruptTooLate   InterruptStatus = "completionWon"
)

// TurnInterruptResult says that the wish is durable, or that the turn had ended.
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

// TurnTraceParams reads what the log has of a turn.
type TurnTraceParams struct {
	TurnID TurnID `json:"turnId"`
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty"` // 1 to 500; absent: 200
}

// TurnTraceResult is a page of the durable events of a turn, in order: its inputs, model calls with tokens and attempts, tool
// calls, questions and their answers, and its end.
type TurnTraceResult struct {
	Turn       TurnReport `json:"turn"`
	Data       []Event    `json:"data"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

// DecisionListParams lists open decisions; without a session, those of all.
type DecisionListParams struct {
	SessionID SessionID `json:"sessionId,omitempty"` // with those of all sessions that work for it
}

// DecisionListResult are the open decisions.
type DecisionListResult struct {
	Data []Decision `json:"data"`
}

// DecisionRespondParams answers a decision. To approve a tool call, argsHash is required: it must be that of the decision.
type DecisionRespondParams struct {
	Mutation
	DecisionID DecisionID      `json:"decisionId"`
	Choice     DecisionChoice  `json:"choice"`             // one of the decision's choices
	Value      json.RawMessage `json:"value,omitempty"`    // with answer: a value that fits the decision's form
	ArgsHash   Digest          `json:"argsHash,omitempty"` // the decision's argsHash; required for each choice of an approval but reject, ignored otherwise
}

// DecisionRespondResult is the answer that counts: ours, or the one that came first.
type DecisionRespondResult struct {
	Answer DecisionAnswer `json:"answer"`
	Won    bool           `json:"won"`
	Seq    Seq            `json:"seq"`
	Replayable
}

// ModelInfo is a model that sessions can use.
type ModelInfo struct {
	Name    string    `json:"name"` // as session/new takes it
	Model   ModelSpec `json:"model"`
	Default bool      `json:"default,omitempty"`
	Price   *Price    `json:"price,omitempty"`   // absent: the configuration has none
	Problem *Issue    `json:"problem,omitempty"` // with check: why calls of this model would fail
}

// ModelListParams asks for the configured models.
type ModelListParams struct {
	Check bool `json:"check,omitempty"` // also ask each model's server whether it takes requests; takes up to five seconds
}

// ModelSetKeyParams hands the daemon an API key that its own environment lacks. It is kept in memory only.
type ModelSetKeyParams struct {
	Name string `json:"name"` // one of initialize's keysWanted
	Key  string `json:"key"`
}

// ModelListResult are the configured models.
type ModelListResult struct {
	Data []ModelInfo `json:"data"`
}

// CompletionParams is one model call outside of any turn.
type CompletionParams struct {
	Mutation
	SessionID  SessionID         `json:"sessionId,omitempty"` // whose ledger it is booked to
	Model      string            `json:"model,omitempty"`
	System     string            `json:"system,omitempty"`
	Messages   []Message         `json:"messages"`
	Generation GenerationOptions `json:"generation,omitzero"`
	Schema     json.RawMessage   `json:"schema,omitempty"` // the answer is JSON of this schema
	Label      string            `json:"label,omitempty"`  // the ledger's source; absent: completion
}

// CompletionResult is the reply.
type CompletionResult struct {
	Message Message    `json:"message"`
	Text    string     `json:"text"`
	Stop    StopReason `json:"stop"`
	Call    CallRecord `json:"call"`
	Replayable
}

// UsageReadParams sums a ledger, with what was used by sessions that work for it, under their labels; without a session, the
// ledgers of all, each call once.
type UsageReadParams struct {
	SessionID SessionID `json:"sessionId,omitempty"`
}

// UsageReadResult is a ledger by source and model.
type UsageReadResult struct {
	Data  []UsageRow `json:"data"`
	Total Usage      `json:"total"`
}

// DebugPromptParams asks what would be sent to the model now.
type DebugPromptParams struct {
	SessionID SessionID   `json:"sessionId"`
	Input     []InputPart `json:"input,omitempty"`
}

// DebugPromptResult is the exact request of the session's next model call, before the adapter encodes it, except for what the
// issues tell of.
type DebugPromptResult struct {
	Model    ModelSpec         `json:"model"`
	System   string            `json:"system"`
	Tools    []ToolManifest    `json:"tools"`
	Messages []Message         `json:"messages"`
	Options  GenerationOptions `json:"options"`
	Body     json.RawMessage   `json:"body,omitempty"` // as the adapter would send it, where it can tell
	// Plugins whose part is missing: they failed, with the code that the turn would fail with; or, beside a turn or a command,
	// they were not_asked.
	Issues []Issue `json:"issues,omitempty"`
}
