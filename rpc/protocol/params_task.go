package protocol

import "encoding/json"

// TaskStartParams starts background work in a session.
type TaskStartParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	TaskID    TaskID    `json:"taskId,omitempty"` // absent: a new one. The same id with the same spec is the task that there is
	Spec      TaskSpec  `json:"spec"`
}

// TaskResult is a task after a change.
type TaskResult struct {
	Task     Task `json:"task"`
	Existing bool `json:"existing,omitempty"` // it had been started before, with the same spec
	Seq      Seq  `json:"seq"`
	Replayable
}

// TaskParams names a task.
type TaskParams struct {
	SessionID SessionID `json:"sessionId"`
	TaskID    TaskID    `json:"taskId"`
}

// TaskListParams asks for tasks, in the order of their newest changes.
type TaskListParams struct {
	SessionID SessionID `json:"sessionId,omitempty"` // those that it may see; absent: all
	Kind      TaskKind  `json:"kind,omitempty"`
	Live      bool      `json:"live,omitempty"`   // only those that are not over
	Hidden    bool      `json:"hidden,omitempty"` // also those that are not listed
	Cursor    string    `json:"cursor,omitempty"` // of an earlier answer: only what has changed since
	Limit     int       `json:"limit,omitempty"`  // default 100, at most 1000
}

// TaskListResult is a page of tasks. Its cursor is always there: asked with later, it gives what has changed since.
type TaskListResult struct {
	Data       []Task        `json:"data"`
	NextCursor string        `json:"nextCursor"`
	More       bool          `json:"more,omitempty"` // there are more now
	Admission  TaskAdmission `json:"admission"`
}

// TaskAdmission tells how many tasks of the daemon are at work, and why others are not.
type TaskAdmission struct {
	Working int `json:"working"`
	Limit   int `json:"limit"`
	Waiting int `json:"waiting"` // for a place
}

// TaskReadParams asks for a task and what happened to it.
type TaskReadParams struct {
	TaskParams
	After int `json:"after,omitempty"` // ordinal of an event: only those after it
	Limit int `json:"limit,omitempty"` // default 100, at most 1000
}

// TaskReadResult is a task and a page of its events, the oldest first.
type TaskReadResult struct {
	Task   Task        `json:"task"`
	Events []TaskEvent `json:"events"`
}

// TaskOutputParams asks for a part of what a task has put out.
type TaskOutputParams struct {
	TaskParams
	Offset int64 `json:"offset,omitempty"` // in bytes; negative: from the end
	Limit  int   `json:"limit,omitempty"`  // in bytes; default 64 KiB, at most 1 MiB
}

// TaskOutputResult is a part of an output. Bytes that are no UTF-8 are replaced in it; the beginning of a character of which the
// rest is not there yet comes with the next part.
type TaskOutputResult struct {
	Text       string `json:"text"`
	Offset     int64  `json:"offset"` // of the first byte
	NextOffset int64  `json:"nextOffset"`
	Size       int64  `json:"size"`           // of all that there is now
	Full       bool   `json:"full,omitempty"` // there was too much: what came later is not kept
	Ended      bool   `json:"ended"`          // the task is over: nothing will be added
}

// TaskRule is when a wait for several tasks ends.
type TaskRule string

const (
	WaitAll          TaskRule = "all"          // of them are over; this is the default
	WaitFirst        TaskRule = "first"        // of them is over
	WaitFirstSuccess TaskRule = "firstSuccess" // of them is completed, or all are over
)

// TaskLosers is what becomes of the tasks that are still live when a wait ends.
type TaskLosers string

const (
	LosersKeep   TaskLosers = "keep"   // they go on; this is the default
	LosersCancel TaskLosers = "cancel" // they are asked to end, in the commit of the end that decides; those of another session before the answer
)

// TaskWaitParams waits for tasks.
type TaskWaitParams struct {
	SessionID SessionID  `json:"sessionId"`
	TaskIDs   []TaskID   `json:"taskIds"`
	Rule      TaskRule   `json:"rule,omitempty"`
	Losers    TaskLosers `json:"losers,omitempty"`
	TimeoutMs int64      `json:"timeoutMs,omitempty"` // absent: none. A timeout changes nothing
}

// TaskWaitResult is how far tasks are when a wait ends.
type TaskWaitResult struct {
	Settled  []Task `json:"settled"` // those that are over, in the order in which they ended
	Live     []Task `json:"live"`
	TimedOut bool   `json:"timedOut,omitempty"`
}

// TaskSignalParams sends something to a task that it declares to take.
type TaskSignalParams struct {
	TaskParams
	Name    string          `json:"name"` // of a command: stdin {text}, closeStdin, interrupt; of one with a terminal also resize {columns, rows}
	Payload json.RawMessage `json:"payload,omitempty"`
}

// TaskCancelParams asks that a task ends. It may still complete.
type TaskCancelParams struct {
	Mutation
	TaskParams
	Reason string `json:"reason,omitempty"`
}

// TaskCancelAllParams asks that all tasks of a session end.
type TaskCancelAllParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	Kind      TaskKind  `json:"kind,omitempty"` // absent: of any
	Keep      []TaskID  `json:"keep,omitempty"` // these go on
	Reason    string    `json:"reason,omitempty"`
}

// TasksResult is tasks after a change.
type TasksResult struct {
	Data []Task `json:"data"`
	Seq  Seq    `json:"seq"`
	Replayable
}

// TaskTransferParams gives tasks to another session: all of them, or none.
type TaskTransferParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	TaskIDs   []TaskID  `json:"taskIds"`
	To        SessionID `json:"to"`
}

// TaskCompleteParams tells how a task ended that runs elsewhere, or gives up one that is lost.
type TaskCompleteParams struct {
	Mutation
	TaskParams
	Outcome TaskOutcome `json:"outcome"`
}

// TaskObserveParams lets another session see a task, or no longer.
type TaskObserveParams struct {
	Mutation
	TaskParams
	Observer SessionID `json:"observer"`
	Remove   bool      `json:"remove,omitempty"`
}

// TaskPruneParams lets go of what is stored of tasks that are over, a thousand at most; the answer holds what is left of each.
type TaskPruneParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	BeforeMs  int64     `json:"beforeAtMs,omitempty"` // ended before; absent: all that are over
}
