package protocol

import "encoding/json"

// TaskID is the id of a task, unique in its session.
type TaskID string // tsk_..., or chosen by the starter

// NewTaskID returns a new unique id.
func NewTaskID() TaskID { return TaskID(newID("tsk_")) }

// TaskKind is the kind of work of a task.
type TaskKind string

const (
	TaskCommand  TaskKind = "command"  // a background command
	TaskMonitor  TaskKind = "monitor"  // a command whose output lines wake its session
	TaskSubagent TaskKind = "subagent" // a turn of a child session
	TaskObserver TaskKind = "observer" // a plugin that observes something
	TaskOther    TaskKind = "other"    // other work of a plugin or a client
)

// TaskState is the state of a task. The last four are final.
type TaskState string

const (
	TaskPending         TaskState = "pending" // not started yet
	TaskRunning         TaskState = "running"
	TaskIdle            TaskState = "idle"            // started, and waiting for something
	TaskCancelRequested TaskState = "cancelRequested" // cancellation was requested; it may still complete
	TaskCompleted       TaskState = "completed"
	TaskFailed          TaskState = "failed"
	TaskCancelled       TaskState = "cancelled"
	TaskAbandoned       TaskState = "abandoned" // its outcome is unknown; outcome.evidence says why
)

// Final reports whether the state is final.
func (s TaskState) Final() bool {
	switch s {
	case TaskCompleted, TaskFailed, TaskCancelled, TaskAbandoned:
		return true
	}
	return false
}

// TaskRecovery says what happens to a running task when the daemon stops. It is set when the task is created.
type TaskRecovery string

const (
	RecoverRerun    TaskRecovery = "rerunnable" // the next daemon runs it again from the start
	RecoverOwner    TaskRecovery = "ownerBound" // the task is abandoned if it had started
	RecoverExternal TaskRecovery = "external"   // nothing: it runs outside lashd and ends with task/complete
)

// TaskCancelPolicy says how a task is cancelled.
type TaskCancelPolicy string

const (
	CancelAbort       TaskCancelPolicy = "abortLocal"  // lashd stops it immediately
	CancelCooperative TaskCancelPolicy = "cooperative" // it receives the request and ends itself
	CancelElsewhere   TaskCancelPolicy = "external"    // lashd only records the request, for the program that runs the task
)

// TaskClosePolicy says what happens to a task when its session is closed.
type TaskClosePolicy string

const (
	CloseKeep     TaskClosePolicy = "keep"     // it continues
	CloseCancel   TaskClosePolicy = "cancel"   // it is cancelled
	CloseTransfer TaskClosePolicy = "transfer" // it moves to the parent session; without a parent it continues
)

// TaskParentEnd says what happens to a task when the task or turn that started it ends.
type TaskParentEnd string

const (
	ParentEndDetach TaskParentEnd = "detach" // it continues
	ParentEndCancel TaskParentEnd = "cancel" // it is cancelled
)

// TaskSpec describes the work of a task. It never changes. Starting a task with a known id and a different spec is a conflict.
type TaskSpec struct {
	Kind        TaskKind         `json:"kind"`
	Label       string           `json:"label,omitempty"` // for display
	Recovery    TaskRecovery     `json:"recovery"`
	MaxAttempts int              `json:"maxAttempts,omitempty"` // of a rerunnable task; 0: three
	Cancel      TaskCancelPolicy `json:"cancel,omitempty"`      // absent: abortLocal
	Close       TaskClosePolicy  `json:"close,omitempty"`       // absent: keep
	ParentEnd   TaskParentEnd    `json:"parentEnd,omitempty"`   // absent: detach
	Parent      TaskID           `json:"parent,omitempty"`      // the task that this one is a part of
	Hidden      bool             `json:"hidden,omitempty"`      // not listed by default, and without events
	TimeoutMs   int64            `json:"timeoutMs,omitempty"`   // time limit of each attempt; 0: no limit
	Command     *TaskShell       `json:"command,omitempty"`     // for the kinds command and monitor
	Subagent    *TaskChild       `json:"subagent,omitempty"`    // for the kind subagent
	Plugin      string           `json:"plugin,omitempty"`      // the plugin that does the work
	Handler     string           `json:"handler,omitempty"`     // the plugin's handler that runs it
	Payload     json.RawMessage  `json:"payload,omitempty"`     // for the handler or program that runs it
	Events      []TaskEventType  `json:"events,omitempty"`      // custom events that it may report
	Signals     []TaskSignalType `json:"signals,omitempty"`     // signals that it accepts
	Ended       *TaskWake        `json:"ended,omitempty"`       // set if its end wakes its session
}

// TaskShell is a shell command.
type TaskShell struct {
	Script  string            `json:"script"`
	Workdir string            `json:"workdir,omitempty"` // absolute path; absent: the session's directory
	Env     map[string]string `json:"env,omitempty"`
	Sandbox SandboxMode       `json:"sandbox,omitempty"` // absent: the command runs outside a sandbox
	Network *NetworkAccess    `json:"network,omitempty"` // hosts that the command reaches from its sandbox; absent: none
	PTY     *TaskTerminal     `json:"pty,omitempty"`     // run it in a terminal of this size
	Detach  bool              `json:"detach,omitempty"`  // for recovery external: the command keeps running when lashd stops; lashd still detects its end and can stop it
}

// TaskTerminal is the size of a terminal, in characters.
type TaskTerminal struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// TaskChild is the turn of a child session that does the work of a task. Every attempt of the task uses the same turn.
type TaskChild struct {
	SessionID SessionID         `json:"sessionId"`       // the child session
	TurnID    TurnID            `json:"turnId"`          // a new turn id
	Agent     string            `json:"agent,omitempty"` // path of the agent's name, such as /root/tests
	Input     []InputPart       `json:"input,omitempty"`
	New       *SessionNewParams `json:"new,omitempty"`          // how to create the child; absent: it exists already
	After     TaskID            `json:"after,omitempty"`        // a task of the same session that must end before the turn begins
	Output    json.RawMessage   `json:"outputSchema,omitempty"` // JSON Schema of the turn's result; absent: anything. lashd asks the model once more if the result does not match
}

// TaskEventType is a custom event that a task may report.
type TaskEventType struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema,omitempty"` // JSON Schema of its payload; absent: anything
	Wake   *TaskWake       `json:"wake,omitempty"`   // set if the event wakes the session
}

// TaskSignalType is a signal that a task accepts.
type TaskSignalType struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// TaskWake says how an event wakes its session.
type TaskWake struct {
	Delivery Delivery `json:"delivery,omitempty"` // absent: afterTurn
	Merge    string   `json:"merge,omitempty"`    // queued wakes with the same key share a turn
	Text     string   `json:"text,omitempty"`     // text for the model; absent: the event itself
}

// TaskOrigin says what started a task.
type TaskOrigin struct {
	SessionID SessionID `json:"sessionId"`
	TurnID    TurnID    `json:"turnId,omitempty"`
	CallID    CallID    `json:"callId,omitempty"`
	Plugin    string    `json:"plugin,omitempty"`
	ClientID  ClientID  `json:"clientId,omitempty"`
	Ceiling   *Ceiling  `json:"ceiling,omitempty"` // limits of what the task may start, in addition to the limits of its session; absent: only the session's limits
}

// Task is work that outlives a turn. Its state is the result of its events.
type Task struct {
	ID              TaskID       `json:"taskId"`
	SessionID       SessionID    `json:"sessionId"`
	Spec            TaskSpec     `json:"spec"`
	Origin          TaskOrigin   `json:"origin"`
	Observers       []SessionID  `json:"observers,omitempty"` // other sessions that may see it, besides its own and its origin's
	State           TaskState    `json:"state"`
	Waiting         string       `json:"waiting,omitempty"` // while idle: what it is waiting for
	Attempt         int          `json:"attempt"`           // number of the current attempt, from 1; 0: not started yet
	Incarnation     string       `json:"incarnation,omitempty"`
	Ref             string       `json:"ref,omitempty"` // of an external task: its id in the other system
	CancelRequested *TaskRequest `json:"cancelRequested,omitempty"`
	AbandonWish     *TaskRequest `json:"abandonRequested,omitempty"`
	CallerDeparted  bool         `json:"callerDeparted,omitempty"` // the turn or task that started it has ended
	Outcome         *TaskOutcome `json:"outcome,omitempty"`        // set in a final state
	Ordinal         int          `json:"ordinal"`                  // of its newest event
	Change          int64        `json:"change,omitempty"`         // increases with every change of any task; usable as a cursor of task/list
	Pruned          bool         `json:"pruned,omitempty"`         // its spec, events and output were deleted by task/prune
	Fingerprint     string       `json:"fingerprint,omitempty"`    // of the spec of a pruned task
	CreatedAtMs     int64        `json:"createdAtMs"`
	StartedAtMs     int64        `json:"startedAtMs,omitempty"`
	UpdatedAtMs     int64        `json:"updatedAtMs"`
	EndedAtMs       int64        `json:"endedAtMs,omitempty"`
}

// TaskRequest is a request to cancel or abandon a task.
type TaskRequest struct {
	By     string `json:"by"` // a client id or internal:<subject>
	Reason string `json:"reason,omitempty"`
	AtMs   int64  `json:"atMs"`
}

// TaskEnd says how a task ended.
type TaskEnd string

const (
	TaskExited  TaskEnd = "exited"    // its process exited: exitCode
	TaskSignal  TaskEnd = "signaled"  // a signal that lashd did not send ended its process: signal
	TaskStopped TaskEnd = "stopped"   // lashd stopped it on request: by
	TaskDone    TaskEnd = "completed" // it reported success
	TaskError   TaskEnd = "failed"    // it reported failure
	TaskLost    TaskEnd = "abandoned" // the outcome is unknown: evidence
)

// TaskOutcome says how a task ended.
type TaskOutcome struct {
	Kind     TaskEnd         `json:"kind"`
	ExitCode *int            `json:"exitCode,omitempty"`
	Signal   string          `json:"signal,omitempty"` // such as SIGKILL
	By       string          `json:"by,omitempty"`     // a client id or internal:<subject>
	Value    json.RawMessage `json:"value,omitempty"`
	Code     string          `json:"code,omitempty"`
	Message  string          `json:"message,omitempty"`
	Evidence *TaskEvidence   `json:"evidence,omitempty"`
	Refusal  *SandboxRefusal `json:"refusal,omitempty"` // the sandbox seems to have refused something to the command
}

// TaskEvidence says why a task is abandoned.
type TaskEvidence struct {
	Writer      TaskWriter `json:"writer"`
	Incarnation string     `json:"incarnation,omitempty"` // of the daemon that ran it
	Attempts    int        `json:"attempts"`
	Reason      string     `json:"reason"`
}

// TaskWriter says what marked a task as abandoned.
type TaskWriter string

const (
	WriterDrain     TaskWriter = "ownerDrain"        // the daemon that ran it, when it stopped
	WriterSweep     TaskWriter = "sweep"             // the next daemon
	WriterRequest   TaskWriter = "reconciledRequest" // a person or a plugin
	WriterExhausted TaskWriter = "gaveUp"            // all attempts were used and none finished
)

// TaskEventKind is the kind of a task event.
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
	TaskTold              TaskEventKind = "event" // a custom event of the task
	TaskWasEnded          TaskEventKind = "ended"
)

// TaskEvent is a change of a task. The events of a task, in order, determine its state.
type TaskEvent struct {
	Ordinal     int             `json:"ordinal"` // 1, 2, 3, ... in its task
	AtMs        int64           `json:"atMs"`
	Kind        TaskEventKind   `json:"kind"`
	SessionID   SessionID       `json:"sessionId,omitempty"` // of created and transferred: the owner from then on; of observer events: the observer
	Spec        *TaskSpec       `json:"spec,omitempty"`
	Origin      *TaskOrigin     `json:"origin,omitempty"`
	Incarnation string          `json:"incarnation,omitempty"` // of started
	Reason      string          `json:"reason,omitempty"`      // of waiting and of requests
	By          string          `json:"by,omitempty"`
	Ref         string          `json:"ref,omitempty"`
	Name        string          `json:"name,omitempty"` // of a custom event
	Payload     json.RawMessage `json:"payload,omitempty"`
	Key         string          `json:"key,omitempty"` // of a custom event: reporting it again with the same key has no effect
	Outcome     *TaskOutcome    `json:"outcome,omitempty"`
}
