package protocol

import "encoding/json"

// TaskStartParams starts a task in a session.
type TaskStartParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	TaskID    TaskID    `json:"taskId,omitempty"` // absent: lashd chooses an id. A known id with the same spec returns the existing task
	Spec      TaskSpec  `json:"spec"`
}

// TaskResult is a task after a change.
type TaskResult struct {
	Task     Task `json:"task"`
	Existing bool `json:"existing,omitempty"` // a task with this id and spec existed already
	Seq      Seq  `json:"seq"`
	Replayable
}

// TaskParams names a task.
type TaskParams struct {
	SessionID SessionID `json:"sessionId"`
	TaskID    TaskID    `json:"taskId"`
}

// TaskListParams selects tasks. The result is sorted by time of the last change.
type TaskListParams struct {
	SessionID SessionID `json:"sessionId,omitempty"` // tasks that this session may see; absent: all tasks
	Kind      TaskKind  `json:"kind,omitempty"`
	Live      bool      `json:"live,omitempty"`   // only tasks that have not ended
	Hidden    bool      `json:"hidden,omitempty"` // include hidden tasks
	Cursor    string    `json:"cursor,omitempty"` // from an earlier result: only tasks that changed since
	Limit     int       `json:"limit,omitempty"`  // 1 to 1000; absent: 100
}

// TaskListResult is a page of tasks. nextCursor is always set; a later request with it returns the tasks that changed since.
type TaskListResult struct {
	Data       []Task        `json:"data"`
	NextCursor string        `json:"nextCursor"`
	More       bool          `json:"more,omitempty"` // more tasks are available now
	Admission  TaskAdmission `json:"admission"`
}

// TaskAdmission counts the running tasks of the daemon and the tasks that wait for a free place.
type TaskAdmission struct {
	Working int `json:"working"` // running tasks
	Limit   int `json:"limit"`   // maximum number of running tasks
	Waiting int `json:"waiting"` // tasks waiting for a free place
}

// TaskReadParams selects a task and a page of its events.
type TaskReadParams struct {
	TaskParams
	After int `json:"after,omitempty"` // only events after this ordinal
	Limit int `json:"limit,omitempty"` // 1 to 1000; absent: 100
}

// TaskReadResult is a task and a page of its events, oldest first.
type TaskReadResult struct {
	Task   Task        `json:"task"`
	Events []TaskEvent `json:"events"`
}

// TaskOutputParams selects a range of a task's output.
type TaskOutputParams struct {
	TaskParams
	Offset int64 `json:"offset,omitempty"` // in bytes; negative: counted from the end
	Limit  int   `json:"limit,omitempty"`  // in bytes, at most 1 MiB; absent: 64 KiB
}

// TaskOutputResult is a range of an output. Invalid UTF-8 is replaced. A character that is incomplete at the end of the range comes
// with the next range.
type TaskOutputResult struct {
	Text       string `json:"text"`
	Offset     int64  `json:"offset"` // of the first byte of text
	NextOffset int64  `json:"nextOffset"`
	Size       int64  `json:"size"`           // current size of the whole output
	Full       bool   `json:"full,omitempty"` // the output reached its size limit; later output was dropped
	Ended      bool   `json:"ended"`          // the task has ended; its output is final
}

// TaskRule says when a wait for several tasks ends.
type TaskRule string

const (
	WaitAll          TaskRule = "all"          // when all tasks have ended; the default
	WaitFirst        TaskRule = "first"        // when one task has ended
	WaitFirstSuccess TaskRule = "firstSuccess" // when one task has completed, or all have ended
)

// TaskLosers says what happens to tasks that have not ended when a wait ends.
type TaskLosers string

const (
	LosersKeep   TaskLosers = "keep"   // they continue; the default
	LosersCancel TaskLosers = "cancel" // lashd requests their cancellation before it responds
)

// TaskWaitParams waits for tasks.
type TaskWaitParams struct {
	SessionID SessionID  `json:"sessionId"`
	TaskIDs   []TaskID   `json:"taskIds"`
	Rule      TaskRule   `json:"rule,omitempty"`
	Losers    TaskLosers `json:"losers,omitempty"`
	TimeoutMs int64      `json:"timeoutMs,omitempty"` // absent: no limit. A timeout does not affect the tasks
}

// TaskWaitResult is the state of the tasks at the end of the wait.
type TaskWaitResult struct {
	Settled  []Task `json:"settled"` // ended tasks, in the order in which they ended
	Live     []Task `json:"live"`    // tasks that have not ended
	TimedOut bool   `json:"timedOut,omitempty"`
}

// TaskSignalParams sends a task a signal that the task declares.
type TaskSignalParams struct {
	TaskParams
	Name    string          `json:"name"` // for a command: stdin {text}, closeStdin or interrupt; with a terminal also resize {columns, rows}
	Payload json.RawMessage `json:"payload,omitempty"`
}

// TaskCancelParams requests that a task ends. The task may still complete.
type TaskCancelParams struct {
	Mutation
	TaskParams
	Reason string `json:"reason,omitempty"`
}

// TaskCancelAllParams requests that all tasks of a session end.
type TaskCancelAllParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	Kind      TaskKind  `json:"kind,omitempty"` // absent: all kinds
	Keep      []TaskID  `json:"keep,omitempty"` // tasks that continue
	Reason    string    `json:"reason,omitempty"`
}

// TasksResult holds the tasks after a change.
type TasksResult struct {
	Data []Task `json:"data"`
	Seq  Seq    `json:"seq"`
	Replayable
}

// TaskTransferParams moves tasks to another session, all or none.
type TaskTransferParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	TaskIDs   []TaskID  `json:"taskIds"`
	To        SessionID `json:"to"`
}

// TaskCompleteParams reports the outcome of a task that runs outside lashd, or abandons a lost task.
type TaskCompleteParams struct {
	Mutation
	TaskParams
	Outcome TaskOutcome `json:"outcome"`
}

// TaskObserveParams lets another session see a task, or with remove, stops that.
type TaskObserveParams struct {
	Mutation
	TaskParams
	Observer SessionID `json:"observer"`
	Remove   bool      `json:"remove,omitempty"`
}

// TaskPruneParams deletes the stored data of up to 1000 ended tasks. The result holds what remains of each.
type TaskPruneParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	BeforeMs  int64     `json:"beforeAtMs,omitempty"` // only tasks that ended before this time; absent: all ended tasks
}
