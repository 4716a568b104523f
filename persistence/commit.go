package persistence

import (
	"context"

	"lashd/rpc/protocol"
)

// Limits of one commit: beyond them it is refused with ErrBudget before the transaction begins. The numbers are those
// that upstream recommends after measuring commits of up to 1 MiB; larger bodies belong into blobs.
const (
	MaxCommitNodes = 512
	MaxCommitBytes = 8 << 20 // a transaction beyond this swells the log
)

// Limits of the commit that ends a turn (Turned): it cannot be made in parts, and without it the turn's work is lost.
const (
	MaxTurnNodes = 8192
	MaxTurnBytes = 64 << 20
)

// Commit is one change of one session: it lands whole or not at all. Zero fields change nothing.
type Commit struct {
	Session   protocol.SessionID
	Receipt   *Receipt
	Forget    string // the key of a receipt that only says that a request has begun; of a commit without a session or receipt
	Fence     Fence
	Requires  protocol.NodeID // must be on the active path, else *StaleBranchError
	Create    *NewSession
	Delete    bool
	Rewind    protocol.NodeID // the leaf moves to this ancestor, before Nodes are added
	Restore   string          // the leaf moves to that of this snapshot, likewise, and what it kept of Keep replaces what there is
	Save      string          // a new snapshot of the session as it is after the commit, with the components of Keep
	Drop      string          // a snapshot that is removed
	Keep      []string        // names of components; their parts go with them
	Config    *protocol.Config
	Meta      *Meta
	Nodes     []protocol.Node // added to the leaf in order; Parent and Generation are given by the store
	Events    []Event
	Turns     []Turn
	Inputs    []protocol.QueuedInput
	Effects   []Effect
	Retire    []protocol.TurnID // turns whose effects are removed
	Usage     []Usage
	Turned    bool            // a turn was completed: the turn index grows
	Total     *protocol.Usage // the session's usage, where it changes
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
	TakeFirst bool // the first input goes to Result.First; without one it is ErrNotFound
	AtMs      int64
}

// Fence says what must still be so. Whatever is not, is ErrFenced, and nothing is changed. It is compared with what is
// stored before the commit: a daemon takes over a turn by a commit that is fenced with the incarnation it read, and whose
// Turns hold the row with its own.
type Fence struct {
	Revision    *int64          // of the head
	Seq         *protocol.Seq   // of the newest event
	Turn        protocol.TurnID // must be open
	Incarnation string          // of the daemon that drives Turn
}

// Receipt makes a commit idempotent: a repeated key with the same hash gets Result back, and nothing is changed. ResultAt, if it is
// set, makes the result of the session's new head, on the writer's goroutine, as often as the commit is tried. One with no result
// only says that the request has begun: the receipt with its result takes its place.
type Receipt struct {
	Key      string
	Hash     []byte
	Result   []byte
	ResultAt func(protocol.Head) []byte
}

// NewSession creates the session that the commit is about. Exactly one of Root and Source is set.
type NewSession struct {
	Title      string
	Cwd        string
	Relation   protocol.Relation
	UsageLabel string // of a child: under which its parent's ledger shows what it uses
	Config     protocol.Config
	Authority  protocol.Authority
	Source     *protocol.ForkSource // shares this history
	Snapshot   string               // takes over the components of this snapshot of Source, not its present ones
	Blank      bool                 // takes over no components of Source
	First      []protocol.InputPart // for whoever takes it first
}

// Meta are the facts of a session that are not history.
type Meta struct {
	Title    *string
	Archived *bool
}

// Event is one line for the session's log. Body is its JSON without sessionId and seq.
type Event struct {
	Type protocol.EventType
	Body []byte
}

// Turn is the row of a turn as it is after the commit. A turn that has ended is never changed: ErrFenced.
type Turn struct {
	ID          protocol.TurnID
	State       protocol.TurnState
	Incarnation string
	Cancel      *protocol.CancelEvidence
	Report      *protocol.TurnReport
	AcceptedMs  int64
	StartedMs   int64
}

// Effect is a journal row. One that is finished never becomes unfinished: ErrFenced.
type Effect struct {
	Turn     protocol.TurnID
	ID       uint64
	Ordinal  int
	Kind     string
	Finished bool
	Hash     []byte
	Body     []byte
}

// Usage is a ledger row, counted once per session, operation and ordinal.
type Usage struct {
	Operation string
	Ordinal   int
	Row       protocol.UsageRow
}

// Component is a keyed part of a session's state. A nil Body removes it.
type Component struct {
	Name string
	Body []byte
}

// Pin keeps a node reachable that the session has, or had, in its history; others are ErrNotRetained.
type Pin struct {
	Node   protocol.NodeID `json:"nodeId"`
	Reason string          `json:"reason,omitempty"`
	AtMs   int64           `json:"atMs"`
}

// Blob is bytes that the session refers to from now on. A nil Body means that the row or the file is in place already.
type Blob struct {
	Digest protocol.Digest
	Size   int64
	Body   []byte
}

// Approval is a standing answer of a person.
type Approval struct {
	Cwd     string
	Tool    string
	Subject string // what the calls are about, exactly
	By      string
}

// TaskChange is a task as it is after its newest events, and these. One that comes from another session names it in From; that
// is the only way in which a task changes its session. A pruned one loses its events.
type TaskChange struct {
	Task   protocol.Task
	Events []protocol.TaskEvent
	From   protocol.SessionID
}

// PluginFact is something that holds for plugins, whatever sessions there are. There is one of each kind and key.
type PluginFact struct {
	Kind string
	Key  string
	Body []byte // nil: the fact is removed
}

// Result is what a commit came to.
type Result struct {
	Replayed bool   // the receipt's key was known: nothing was changed
	Stored   []byte // the receipt's result, as it was first given
	Head     protocol.Head
	Seq      protocol.Seq    // of the last event
	Nodes    []protocol.Node // as they were placed
	First    []protocol.InputPart
}

// Commit makes a change durable. It returns once the change survives any crash, or with an error that says what
// stopped it. After ErrPoisoned, and when ctx ends before the answer, nobody knows whether the change was made: ask
// again with the same receipt. c must not be changed afterwards, as the writer may still be reading it.
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
	var over func() error
	select {
	case <-r.done:
		return r.result, r.err
	case <-w.ended:
		over = w.stopped
	case <-ctx.Done():
		over = func() error { return context.Cause(ctx) }
	}
	select {
	case <-r.done: // it was among the last, or ctx ended just then
		return r.result, r.err
	default:
		return Result{}, over()
	}
}
