package protocol

// Head is where a session stands in its history. Revision grows by one with each commit that moves the leaf or the
// configuration.
type Head struct {
	Revision   int64   `json:"revision"`
	Leaf       NodeID  `json:"leaf"`
	Generation int64   `json:"generation"`
	Frame      FrameID `json:"frame"`
}

// RelationKind says how a session came to be.
type RelationKind string

const (
	RelationRoot  RelationKind = "root"
	RelationChild RelationKind = "child"
	RelationFork  RelationKind = "fork"
)

// Relation is where a session comes from.
type Relation struct {
	Kind   RelationKind `json:"kind"`
	Parent SessionID    `json:"parent,omitempty"` // of a child
	Cause  string       `json:"cause,omitempty"`  // of a child
	Source *ForkSource  `json:"source,omitempty"` // of a fork
	// For which session a plugin or a task asked for it: their plugins may name it.
	AskedBy SessionID `json:"askedBy,omitempty"`
	// Of a child: it is there for a moment, until who made it deletes it. What a daemon leaves unfinished of one, the next one deletes.
	Temporary bool `json:"temporary,omitempty"`
}

// ForkSource is the point at which a fork begins.
type ForkSource struct {
	SessionID SessionID `json:"sessionId"`
	Node      NodeID    `json:"node"`
}

// SessionState is what a session is doing.
type SessionState string

const (
	SessionIdle           SessionState = "idle"
	SessionRunning        SessionState = "running"
	SessionRequiresAction SessionState = "requiresAction" // a decision is open
)

// Session is what is known of a session without reading its history.
type Session struct {
	ID          SessionID    `json:"sessionId"`
	Title       string       `json:"title,omitempty"`
	Cwd         string       `json:"cwd"`
	State       SessionState `json:"state"`
	Head        Head         `json:"head"`
	Config      Config       `json:"config"`
	Relation    Relation     `json:"relation"`
	Authority   Authority    `json:"authority,omitzero"`
	Seq         Seq          `json:"seq"`       // of its newest event
	TurnIndex   int64        `json:"turnIndex"` // turns completed
	Usage       Usage        `json:"usage"`     // its own, by turns that have ended; usage/read has the ledger
	CreatedAtMs int64        `json:"createdAtMs"`
	UpdatedAtMs int64        `json:"updatedAtMs"`
	Archived    bool         `json:"archived,omitempty"`
}

// Boundary is the checkpoint at which a steered input may enter a running turn.
type Boundary string

const (
	BoundaryAfterWork        Boundary = "afterWork"        // after a batch of tools or a code cell, or later
	BoundaryBeforeCompletion Boundary = "beforeCompletion" // only when the model wants to finish
)

// InputState is where an input is.
type InputState string

const (
	InputPendingActive InputState = "pendingActive" // waits for a checkpoint of the running turn
	InputDeferred      InputState = "deferredNextTurn"
	InputQueued        InputState = "queued"   // waits for its own turn
	InputAccepted      InputState = "accepted" // entered a turn that is not committed yet
	InputCompleted     InputState = "completed"
	InputCancelled     InputState = "cancelled"
)

// QueuedInput is an input and where it is.
type QueuedInput struct {
	ID           InputID      `json:"inputId"`
	TurnID       TurnID       `json:"turnId"` // the turn that will consume it, or did
	State        InputState   `json:"state"`
	Input        []InputPart  `json:"input"`
	PluginInputs PluginInputs `json:"pluginInputs,omitempty"`
	Boundary     Boundary     `json:"boundary,omitempty"`
	Source       string       `json:"source,omitempty"` // of a plugin that queued it: its id and its own key; or of a wake
	AtMs         int64        `json:"atMs"`
	Wake         *QueuedWake  `json:"wake,omitempty"`    // no person sent it: why it came
	Refused      WakeRefusal  `json:"refused,omitempty"` // of a wake that is cancelled because nobody wants it any more: why

	TurnOptions *TurnOptions `json:"turnOptions,omitempty"`
	Switches    int          `json:"switches,omitempty"` // of frames that led to it: it is the task of the last one
	Ceiling     *Ceiling     `json:"ceiling,omitempty"`  // a plugin or another session sent it: what its turn is held to, beside the session's own limits
}
