package protocol

import "encoding/json"

// TaskID names a task in its session.
type TaskID string // tsk_..., or chosen by whoever starts it

// NewTaskID returns an id that was never used.
func NewTaskID() TaskID { return TaskID(newID("tsk_")) }

// TaskKind is what kind of work a task is.
type TaskKind string

const (
	TaskCommand  TaskKind = "command"  // a command of the shell
	TaskMonitor  TaskKind = "monitor"  // a command whose lines wake its session
	TaskSubagent TaskKind = "subagent" // a turn of a child session
	TaskObserver TaskKind = "observer" // of a plugin: it watches something
	TaskOther    TaskKind = "other"    // of a plugin or a client
)

// TaskState is where a task is. The last four are final.
type TaskState string

const (
	TaskPending         TaskState = "pending" // not begun yet
	TaskRunning         TaskState = "running"
	TaskIdle            TaskState = "idle"            // begun, and waits for something
	TaskCancelRequested TaskState = "cancelRequested" // asked to end; it may still run, and may still complete
	TaskCompleted       TaskState = "completed"
	TaskFailed          TaskState = "failed"
	TaskCancelled       TaskState = "cancelled"
	TaskAbandoned       TaskState = "abandoned" // nobody can say how it ended; the outcome holds the evidence
)

// Final tells whether a task in this state is over, for ever.
func (s TaskState) Final() bool {
	switch s {
	case TaskCompleted, TaskFailed, TaskCancelled, TaskAbandoned:
		return true
	}
	return false
}

// TaskRecovery is what becomes of a task whose daemon ended while it ran. It is declared when the task is created.
type TaskRecovery string

const (
	RecoverRerun    TaskRecovery = "rerunnable" // it is run again, from the beginning
	RecoverOwner    TaskRecovery = "ownerBound" // it is abandoned, once it had begun
	RecoverExternal TaskRecovery = "external"   // nothing: it runs elsewhere, and somebody completes it
)

// TaskCancelPolicy is how a task is ended before its time.
type TaskCancelPolicy string

const (
	CancelAbort       TaskCancelPolicy = "abortLocal"  // at once
	CancelCooperative TaskCancelPolicy = "cooperative" // it is asked, and ends when it wants to
	CancelElsewhere   TaskCancelPolicy = "external"    // only the wish is noted, for whoever runs it
)

// TaskClosePolicy is what becomes of a task when its session is closed.
type TaskClosePolicy string

const (
	CloseKeep     TaskClosePolicy = "keep"     // it goes on
	CloseCancel   TaskClosePolicy = "cancel"   // it is cancelled
	CloseTransfer TaskClosePolicy = "transfer" // it goes to the session that this one works for; if there is none, it goes on
)

// TaskParentEnd is what becomes of a task when the task or the turn that started it ends.
type TaskParentEnd string

const (
	ParentEndDetach TaskParentEnd = "detach" // it goes on
	ParentEndCancel TaskParentEnd = "cancel"
)

// TaskSpec is what a task is started with. It never changes; the same id with another one is a conflict.
type TaskSpec struct {
	Kind        TaskKind         `json:"kind"`
	Label       string           `json:"label,omitempty"` // for people
	Recovery    TaskRecovery     `json:"recovery"`
	MaxAttempts int              `json:"maxAttempts,omitempty"` // of a rerunnable one; 0: three
	Cancel      TaskCancelPolicy `json:"cancel,omitempty"`      // empty: abortLocal
	Close       TaskClosePolicy  `json:"close,omitempty"`       // empty: keep
	ParentEnd   TaskParentEnd    `json:"parentEnd,omitempty"`   // empty: detach
	Parent      TaskID           `json:"parent,omitempty"`      // the task that it is a part of
	Hidden      bool             `json:"hidden,omitempty"`      // not listed, no events
	TimeoutMs   int64            `json:"timeoutMs,omitempty"`   // of each attempt; 0: none
	Command     *TaskShell       `json:"command,omitempty"`     // of a command or a monitor
	Subagent    *TaskChild       `json:"subagent,omitempty"`
	Plugin      string           `json:"plugin,omitempty"`  // whose work it is
	Handler     string           `json:"handler,omitempty"` // of that plugin, which runs it
	Payload     json.RawMessage  `json:"payload,omitempty"` // for whoever runs it
	Events      []TaskEventType  `json:"events,omitempty"`  // that it may tell of
	Signals     []TaskSignalType `json:"signals,omitempty"` // that may be sent to it
	Ended       *TaskWake        `json:"ended,omitempty"`   // its end wakes its session
}

// TaskShell is a command of the shell.
type TaskShell struct {
	Script  string            `json:"script"`
	Workdir string            `json:"workdir,omitempty"` // absolute; empty: that of the session
	Env     map[string]string `json:"env,omitempty"`
	PTY     *TaskTerminal     `json:"pty,omitempty"`    // it gets a terminal
	Detach  bool              `json:"detach,omitempty"` // it outlives lashd, which sees it end, and stops it when it is asked to; of an external command
}

// TaskTerminal is the size of a terminal.
type TaskTerminal struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// TaskChild is the turn of a session that works for the one that starts the task. It is the same turn however often the task is
// begun.
type TaskChild struct {
	SessionID SessionID         `json:"sessionId"`       // the child; never that of another work
	TurnID    TurnID            `json:"turnId"`          // never used before
	Agent     string            `json:"agent,omitempty"` // the path of its name, such as /root/tests
	Input     []InputPart       `json:"input,omitempty"`
	New       *SessionNewParams `json:"new,omitempty"`          // how the child is made; absent: it is there already
	After     TaskID            `json:"after,omitempty"`        // a task of the same session that has to be over before the turn begins
	Output    json.RawMessage   `json:"outputSchema,omitempty"` // JSON Schema of what the turn comes to; absent: anything. What does not fit is asked for once more
}

// TaskEventType is an event of its own that a task may tell of.
type TaskEventType struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema,omitempty"` // JSON Schema of its payload; absent: anything
	Wake   *TaskWake       `json:"wake,omitempty"`   // it wakes the session
}

// TaskSignalType is something that may be sent to a task.
type TaskSignalType struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// TaskWake is how an event wakes its session.
type TaskWake struct {
	Delivery Delivery `json:"delivery,omitempty"` // empty: afterTurn
	Merge    string   `json:"merge,omitempty"`    // events of one key that wait together become one turn
	Text     string   `json:"text,omitempty"`     // what the model is told; empty: the event itself
}

// TaskOrigin is who started a task.
type TaskOrigin struct {
	SessionID SessionID `json:"sessionId"`
	TurnID    TurnID    `json:"turnId,omitempty"`
	CallID    CallID    `json:"callId,omitempty"`
	Plugin    string    `json:"plugin,omitempty"`
	ClientID  ClientID  `json:"clientId,omitempty"`
	Ceiling   *Ceiling  `json:"ceiling,omitempty"` // what it may cause others to do, beside the limits of its session; absent: all that the session may
}

// Task is work that outlives a turn. It is what its events come to.
type Task struct {
	ID              TaskID       `json:"taskId"`
	SessionID       SessionID    `json:"sessionId"`
	Spec            TaskSpec     `json:"spec"`
	Origin          TaskOrigin   `json:"origin"`
	Observers       []SessionID  `json:"observers,omitempty"` // sessions that may see it besides its own and its origin
	State           TaskState    `json:"state"`
	Waiting         string       `json:"waiting,omitempty"` // for what, while it is idle
	Attempt         int          `json:"attempt"`           // 1 is the first; 0: none was begun
	Incarnation     string       `json:"incarnation,omitempty"`
	Ref             string       `json:"ref,omitempty"` // of an external one, outside
	CancelRequested *TaskRequest `json:"cancelRequested,omitempty"`
	AbandonWish     *TaskRequest `json:"abandonRequested,omitempty"`
	CallerDeparted  bool         `json:"callerDeparted,omitempty"` // what started it is over, and it goes on
	Outcome         *TaskOutcome `json:"outcome,omitempty"`        // of a final state
	Ordinal         int          `json:"ordinal"`                  // of its newest event
	Change          int64        `json:"change,omitempty"`         // grows with every change of any task: a cursor for task/list
	Pruned          bool         `json:"pruned,omitempty"`         // it was let go: of its spec, its events and its output only this is left
	Fingerprint     string       `json:"fingerprint,omitempty"`    // of the spec of a pruned one
	CreatedAtMs     int64        `json:"createdAtMs"`
	StartedAtMs     int64        `json:"startedAtMs,omitempty"`
	UpdatedAtMs     int64        `json:"updatedAtMs"`
	EndedAtMs       int64        `json:"endedAtMs,omitempty"`
}

// TaskRequest is somebody's wish about a task.
type TaskRequest struct {
	By     string `json:"by"` // a client id, or internal:<subject>
	Reason string `json:"reason,omitempty"`
	AtMs   int64  `json:"atMs"`
}

// TaskEnd is how a task ended.
type TaskEnd string

const (
	TaskExited  TaskEnd = "exited"    // its process ended by itself, with exitCode
	TaskSignal  TaskEnd = "signaled"  // a signal ended its process that lashd did not send
	TaskStopped TaskEnd = "stopped"   // lashd stopped it: by tells for whom
	TaskDone    TaskEnd = "completed" // it said so
	TaskError   TaskEnd = "failed"    // it said so
	TaskLost    TaskEnd = "abandoned" // nobody knows: evidence
)

// TaskOutcome is how a task ended, as far as it is known.
type TaskOutcome struct {
	Kind     TaskEnd         `json:"kind"`
	ExitCode *int            `json:"exitCode,omitempty"`
	Signal   string          `json:"signal,omitempty"` // such as SIGKILL
	By       string          `json:"by,omitempty"`     // a client id, or internal:<subject>
	Value    json.RawMessage `json:"value,omitempty"`
	Code     string          `json:"code,omitempty"`
	Message  string          `json:"message,omitempty"`
	Evidence *TaskEvidence   `json:"evidence,omitempty"`
}

// TaskEvidence is why a task is given up as abandoned.
type TaskEvidence struct {
	Writer      TaskWriter `json:"writer"`
	Incarnation string     `json:"incarnation,omitempty"` // of the daemon in which it ran
	Attempts    int        `json:"attempts"`
	Reason      string     `json:"reason"`
}

// TaskWriter is who found that a task is abandoned.
type TaskWriter string

const (
	WriterDrain     TaskWriter = "ownerDrain"        // the daemon in which it ran, as it stopped
	WriterSweep     TaskWriter = "sweep"             // the next daemon
	WriterRequest   TaskWriter = "reconciledRequest" // a person, or a plugin
	WriterExhausted TaskWriter = "gaveUp"            // all attempts were begun, and none came to an end
)

// TaskEventKind is what happened to a task.
type TaskEventKind string

const (
	TaskWasCreated        TaskEventKind = "created"
	TaskWasStarted        TaskEventKind = "started" // an attempt begins
	TaskWasWaiting        TaskEventKind = "waiting"
	TaskWasResumed        TaskEventKind = "resumed"
	TaskGotRef            TaskEventKind = "externalRef"
	TaskGotCancelRequest  TaskEventKind = "cancelRequested"
	TaskGotAbandonRequest TaskEventKind = "abandonRequested"
	TaskLostCaller        TaskEventKind = "callerDeparted"
	TaskGotObserver       TaskEventKind = "observerAdded"
	TaskLostObserver      TaskEventKind = "observerRemoved"
	TaskWasTransferred    TaskEventKind = "transferred"
	TaskTold              TaskEventKind = "event" // an event of the task's own
	TaskWasEnded          TaskEventKind = "ended"
)

// TaskEvent is a thing that happened to a task. A task is what its events come to, in their order.
type TaskEvent struct {
	Ordinal     int             `json:"ordinal"` // 1, 2, 3, ... in its task
	AtMs        int64           `json:"atMs"`
	Kind        TaskEventKind   `json:"kind"`
	SessionID   SessionID       `json:"sessionId,omitempty"` // of created and transferred: whose the task is from then on; of an observer: which
	Spec        *TaskSpec       `json:"spec,omitempty"`
	Origin      *TaskOrigin     `json:"origin,omitempty"`
	Incarnation string          `json:"incarnation,omitempty"` // of started
	Reason      string          `json:"reason,omitempty"`      // of waiting and requests
	By          string          `json:"by,omitempty"`
	Ref         string          `json:"ref,omitempty"`
	Name        string          `json:"name,omitempty"` // of an event of the task's own
	Payload     json.RawMessage `json:"payload,omitempty"`
	Key         string          `json:"key,omitempty"` // likewise: told again with the same key, it does not happen again
	Outcome     *TaskOutcome    `json:"outcome,omitempty"`
}
