package persistence

import (
	"context"

	"lashd/rpc/protocol"
)

// Limits of one commit. A larger one fails with ErrBudget before its transaction begins. Upstream
// recommends these numbers after measuring commits of up to 1 MiB. Larger bodies belong in blobs.
const (
	MaxCommitNodes = 512
	MaxCommitBytes = 8 << 20 // a larger transaction swells the log
)

// Limits of the commit that ends a turn (Turned), and of one that creates a session with an imported
// history. They cannot be split, and without the former the turn's work would be lost, so they are
// higher.
const (
	MaxTurnNodes = 8192
	MaxTurnBytes = 64 << 20
)

// Commit is one change of a session, or of the store if Session is empty. It lands completely or
// not at all. Zero fields change nothing, so callers set only what they change.
//
// The writer applies a commit in this order: it looks for a stored receipt, opens or creates the
// session, checks Requires and Fence, moves the leaf (Rewind, Restore), appends Nodes and Events,
// writes the other rows, and stores the receipt. Rows refer to each other by id; the store assigns
// row numbers, event numbers and the place of each node.
type Commit struct {
	Session protocol.SessionID
	// Receipt makes the commit idempotent. Nil: a repeated commit is applied again.
	Receipt *Receipt
	// Forget removes the receipt of this key if it only records that a request has begun. Set it in
	// a commit without a session and without a Receipt.
	Forget string
	// Fence rejects the commit if the session has changed since the caller read it.
	Fence Fence
	// Requires must be on the active path; otherwise the commit fails with *StaleBranchError.
	Requires protocol.NodeID
	// Create makes the session; it must not exist. Delete removes it with everything that only it
	// owns.
	Create *NewSession
	Delete bool
	// Rewind moves the leaf to this ancestor before Nodes are appended.
	Rewind protocol.NodeID
	// Restore moves the leaf to that of the named snapshot before Nodes are appended, and replaces
	// the components of Keep by the ones that the snapshot holds.
	Restore string
	// Save makes a snapshot of this name after all other changes, with the components of Keep.
	Save string
	// Drop removes the snapshot of this name.
	Drop string
	// Keep names the components that Save and Restore copy. Their parts (name/...) are included.
	Keep   []string
	Config *protocol.Config
	Meta   *Meta
	// Nodes are appended to the leaf in order. The store fills in Parent, Generation and Frame.
	Nodes   []protocol.Node
	Events  []Event
	Turns   []Turn
	Inputs  []protocol.QueuedInput
	Effects []Effect
	// Retire removes the effects of these turns: they have ended and need no replay.
	Retire []protocol.TurnID
	Usage  []Usage
	// Turned marks the commit that completes a turn: the turn index grows by one, and the higher
	// limits apply.
	Turned bool
	// Total replaces the session's usage. Nil leaves it unchanged.
	Total     *protocol.Usage
	Component []Component
	Decisions []protocol.Decision
	Pins      []Pin
	Unpin     []protocol.NodeID
	Blobs     []Blob
	Approve   []Approval
	Facts     []PluginFact
	Tasks     []TaskChange
	Triggers  TriggerChange
	Files     FileCommit
	Tidy      FileTidy
	// TakeFirst moves the session's first input to Result.First, or fails with ErrNotFound.
	TakeFirst bool
	// AtMs is the time of the commit in milliseconds since 1970. The store never reads the clock
	// for rows.
	AtMs int64
}

// Fence states what the caller expects of the stored session. If any expectation fails, the commit
// is ErrFenced and changes nothing. The comparison uses the state before the commit: to take over a
// turn, a daemon fences with the incarnation that it read and writes the turn's row with its own.
type Fence struct {
	Revision    *int64          // of the head; nil: not compared
	Seq         *protocol.Seq   // of the newest event; nil: not compared
	Turn        protocol.TurnID // must be open (queued, running or waiting); empty: not compared
	Incarnation string          // of the daemon that drives Turn
}

// Receipt stores the result of a request under its idempotency key, in the same commit. Another
// commit with the same key and hash changes nothing and gets the stored result. The same key with
// another hash is ErrReceiptConflict.
//
// A receipt with an empty result records only that the request has begun. The receipt with the
// result replaces it.
type Receipt struct {
	Key    string // 1 to 256 bytes, chosen by the client
	Hash   []byte // of the method and its parameters
	Result []byte
	// ResultAt, if not nil, computes the result from the session's new head. It runs on the
	// writer's goroutine, once for each attempt, and must not block.
	ResultAt func(protocol.Head) []byte
}

// NewSession describes the session that a commit creates. If Source is set the session is a fork:
// it shares the history of another session up to a node. Otherwise it starts empty.
type NewSession struct {
	Title      string
	Cwd        string
	Relation   protocol.Relation
	UsageLabel string // label of this child's usage in its parent's ledger
	Config     protocol.Config
	Authority  protocol.Authority
	Source     *protocol.ForkSource // session and node whose history is shared; nil: none
	Snapshot   string               // copy the components of this snapshot of Source instead of the current ones
	Blank      bool                 // copy no components of Source
	First      []protocol.InputPart // stored until a commit with TakeFirst removes it
	Turns      int64                // completed turns of the history that it starts with
	Imported   bool                 // Nodes are a whole history: the limits of a commit that ends a turn apply
}

// Meta changes facts of a session that are not history. A nil field stays as it is.
type Meta struct {
	Title    *string
	Archived *bool
}

// Event is one entry for the session's log. Body is its JSON without sessionId and seq, which the
// log's place already says.
type Event struct {
	Type protocol.EventType
	Body []byte
}

// Turn is the row of a turn after the commit. A turn that has ended cannot change again; an attempt
// is ErrFenced.
type Turn struct {
	ID          protocol.TurnID
	State       protocol.TurnState
	Incarnation string
	Cancel      *protocol.CancelEvidence
	Report      *protocol.TurnReport
	AcceptedMs  int64
	StartedMs   int64
}

// Effect is one entry in the journal of a running turn: a request, and its result once it is
// finished. A restart replays finished effects. A finished effect cannot become unfinished again;
// an attempt is ErrFenced.
type Effect struct {
	// Turn owns the effect; it may also be a client's call outside of any turn.
	Turn protocol.TurnID
	// ID and Ordinal identify the effect within the turn. Effects are replayed in this order.
	ID       uint64
	Ordinal  int
	Kind     string
	Finished bool
	Hash     []byte
	Body     []byte
}

// Usage is one row of the ledger. A session counts each operation and ordinal once, so a replayed
// commit adds nothing.
type Usage struct {
	Operation string
	Ordinal   int
	Row       protocol.UsageRow
}

// Component is a named part of a session's state, such as the state of one plugin. A nil Body
// removes it; an empty one is stored. The store does not interpret Body.
type Component struct {
	Name string
	Body []byte
}

// Pin keeps a node reachable after its branch is abandoned. The node must be on a current or former
// path of the session, otherwise the commit fails with ErrNotRetained.
type Pin struct {
	Node   protocol.NodeID `json:"nodeId"`
	Reason string          `json:"reason,omitempty"`
	AtMs   int64           `json:"atMs"`
}

// Blob is content that the session refers to from this commit on. PrepareBlob makes one. A nil Body
// means that the row or the file already exists.
type Blob struct {
	Digest protocol.Digest
	Size   int64
	Body   []byte
}

// Approval is an approval rule that a person has stored: calls of Tool in Cwd about Subject are
// allowed.
type Approval struct {
	Cwd     string
	Tool    string // empty: Subject is a rule as JSON
	Subject string // digest of the call's arguments, a space, and their beginning for people
	By      string
	Remove  bool // in a commit: delete the row with this Cwd, Tool and Subject
}

// TaskChange stores a task after its newest events, together with those events. From names the
// session that the task moves away from; this is the only way to move a task. A pruned task loses
// its stored events.
type TaskChange struct {
	Task   protocol.Task
	Events []protocol.TaskEvent
	From   protocol.SessionID
}

// PluginFact is a fact about plugins that belongs to no session, such as a trusted digest. Kind and
// Key identify it. The plugin loader defines the kinds and their bodies.
type PluginFact struct {
	Kind string
	Key  string
	Body []byte // nil: the fact is removed
}

// Result describes a commit that succeeded.
type Result struct {
	Replayed bool   // the receipt's key was already stored, and nothing changed
	Stored   []byte // result in the stored receipt
	Head     protocol.Head
	Seq      protocol.Seq         // of the last event
	Nodes    []protocol.Node      // with the parent, generation and frame that the store assigned
	First    []protocol.InputPart // taken because of TakeFirst
}

// Commit makes a change durable. It returns nil only when the change survives a crash and a power
// loss.
//
// After ErrPoisoned, or if ctx ends before the result arrives, the outcome is unknown: commit again
// with the same receipt to find out. Other errors mean that nothing changed. The caller must not
// modify c afterwards, even if ctx has ended, because the writer may still read it.
func (w *writer) Commit(ctx context.Context, c *Commit) (Result, error) {
	r, err := newRequest(c)
	if err != nil {
		return Result{}, err
	}
	if err := w.stopped(); err != nil {
		return Result{}, err
	}
	select {
	case w.requests <- r:
	case <-w.ended:
		return Result{}, w.stopped()
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
	var reason func() error
	select {
	case <-r.done:
		return r.result, r.err
	case <-w.ended:
		reason = w.stopped
	case <-ctx.Done():
		reason = func() error { return context.Cause(ctx) }
	}
	select {
	case <-r.done: // it was among the last, or ctx ended just then
		return r.result, r.err
	default:
		return Result{}, reason()
	}
}
