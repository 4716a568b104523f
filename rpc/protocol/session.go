package protocol

import "encoding/json"

// Head is a session's position in its history. Revision increases by one with each commit that changes the leaf or the
// configuration.
type Head struct {
	Revision   int64   `json:"revision"`
	Leaf       NodeID  `json:"leaf"`
	Generation int64   `json:"generation"`
	Frame      FrameID `json:"frame"`
}

// RelationKind says how a session was created.
type RelationKind string

const (
	RelationRoot  RelationKind = "root"  // on its own
	RelationChild RelationKind = "child" // to work for a parent session
	RelationFork  RelationKind = "fork"  // as a fork of another session
)

// Relation links a session to the session it was created from.
type Relation struct {
	Kind   RelationKind `json:"kind"`
	Parent SessionID    `json:"parent,omitempty"` // of a child
	Cause  string       `json:"cause,omitempty"`  // of a child
	Source *ForkSource  `json:"source,omitempty"` // of a fork
	// The session whose plugin or task requested this one. Plugins of that session may use this session's id.
	AskedBy SessionID `json:"askedBy,omitempty"`
	// Of a child: its creator deletes it after use. If the daemon stops before that, the next daemon deletes it.
	Temporary bool `json:"temporary,omitempty"`
}

// ForkSource is the node at which a fork branches off.
type ForkSource struct {
	SessionID SessionID `json:"sessionId"`
	Node      NodeID    `json:"node"`
}

// SessionState is the activity of a session.
type SessionState string

const (
	SessionIdle           SessionState = "idle"
	SessionRunning        SessionState = "running"
	SessionRequiresAction SessionState = "requiresAction" // a decision is open
)

// Session describes a session, without its history.
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
	TurnIndex   int64        `json:"turnIndex"` // number of completed turns
	Usage       Usage        `json:"usage"`     // of its own ended turns; usage/read returns the full ledger
	CreatedAtMs int64        `json:"createdAtMs"`
	UpdatedAtMs int64        `json:"updatedAtMs"`
	Archived    bool         `json:"archived,omitempty"`
	FirstInput  string       `json:"firstInput,omitempty"` // the beginning of the first text that a person sent to it, at most 200 characters; only in session/list
}

// Boundary is the kind of checkpoint at which a steered input may enter a running turn.
type Boundary string

const (
	BoundaryAfterWork        Boundary = "afterWork"        // after a batch of tool calls or a code cell, or at any later checkpoint
	BoundaryBeforeCompletion Boundary = "beforeCompletion" // only when the model has finished its work
)

// InputState is the state of an input.
type InputState string

const (
	InputPendingActive InputState = "pendingActive"    // steered; waits for a checkpoint of the running turn
	InputDeferred      InputState = "deferredNextTurn" // steered too late; the next turn uses it
	InputQueued        InputState = "queued"           // waits for its own turn
	InputAccepted      InputState = "accepted"         // entered a turn that has not ended yet
	InputCompleted     InputState = "completed"
	InputCancelled     InputState = "cancelled"
)

// QueuedInput is an input and its state in the queue.
type QueuedInput struct {
	ID           InputID      `json:"inputId"`
	TurnID       TurnID       `json:"turnId"` // the turn that uses it
	State        InputState   `json:"state"`
	Input        []InputPart  `json:"input"`
	PluginInputs PluginInputs `json:"pluginInputs,omitempty"`
	Boundary     Boundary     `json:"boundary,omitempty"`
	Source       string       `json:"source,omitempty"` // set if a plugin queued it (plugin id and the plugin's key) or a wake did
	AtMs         int64        `json:"atMs"`
	Wake         *QueuedWake  `json:"wake,omitempty"`    // set if the input is a wake
	Refused      WakeRefusal  `json:"refused,omitempty"` // why a cancelled wake was not delivered

	TurnOptions *TurnOptions    `json:"turnOptions,omitempty"`
	Effort      string          `json:"effort,omitempty"`     // reasoning effort of its turn
	Iterations  int             `json:"iterations,omitempty"` // maximum number of model calls of its turn
	Schema      json.RawMessage `json:"schema,omitempty"`     // JSON Schema of the value of its turn
	Switches    int             `json:"switches,omitempty"`   // number of frame switches that led to it; it is the task of the last one
	Ceiling     *Ceiling        `json:"ceiling,omitempty"`    // set if a plugin or another session sent it: limits of its turn, in addition to the session's own
}
