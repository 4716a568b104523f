package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"lashd/rpc/protocol"
)

// TaskReadService reads tasks: work that outlives a turn. An empty session id means the hook's own session. A session
// sees its own tasks, those that it started, and those that it observes.
type TaskReadService interface {
	// ListTasks returns the tasks that are not hidden, ordered by their latest change. Pass the cursor of the result to
	// get the changes since.
	ListTasks(context.Context, *protocol.TaskListParams) (*protocol.TaskListResult, error)
	ReadTask(context.Context, *protocol.TaskReadParams) (*protocol.TaskReadResult, error)
	TaskOutput(context.Context, *protocol.TaskOutputParams) (*protocol.TaskOutputResult, error)
	// FollowTasks yields tasks whenever they change, starting after the cursor, until ctx is done or the loop ends. A
	// slow reader misses no task, but sees only the latest of several changes of one.
	FollowTasks(context.Context, *protocol.TaskListParams) iter.Seq2[protocol.Task, error]
	// ValidateVisible returns a HandleError unless every task is listed and live.
	ValidateVisible(context.Context, protocol.SessionID, []protocol.TaskID) error
}

// TaskService runs tasks. CompleteTask and TransitionTask ignore changes that come after the end of a task, and return
// the task as it is.
type TaskService interface {
	TaskReadService
	// StartTask makes a task durable and starts it as soon as there is room. Starting the same id with the same spec
	// returns the existing task.
	StartTask(context.Context, *TaskStart) (*protocol.TaskResult, error)
	// CompleteTask reports the outcome of an external task.
	CompleteTask(context.Context, *protocol.TaskCompleteParams) (protocol.Task, error)
	// TransitionTask reports that a running task is idle, or that it continues. An idle task gives up its place among
	// the running ones, so continuing may have to wait for a free one.
	TransitionTask(context.Context, *TaskTransition) (protocol.Task, error)
	// TellTask adds an event that the task's spec declares.
	TellTask(context.Context, *TaskTold) (protocol.Task, error)
	AwaitTasks(context.Context, *protocol.TaskWaitParams) (*protocol.TaskWaitResult, error)
	SignalTask(context.Context, *protocol.TaskSignalParams) (protocol.Task, error)
	// CancelTask asks a visible task to end. The task may still complete.
	CancelTask(context.Context, *protocol.TaskCancelParams) (protocol.Task, error)
	// CancelTasks is CancelTask for all live tasks of a session that are neither hidden nor kept.
	CancelTasks(context.Context, *protocol.TaskCancelAllParams) ([]protocol.Task, error)
	// TransferTasks gives live tasks to another session, all or none. It ignores tasks that have ended or do not exist.
	TransferTasks(context.Context, *protocol.TaskTransferParams) ([]protocol.Task, error)
	// AwaitHidden waits until a session has no live hidden task, including those that start while it waits. A hidden
	// task that calls it does not wait for itself. It returns the first TaskFailedError since its last call, if any.
	AwaitHidden(context.Context, protocol.SessionID) error
}

// TaskStart describes a task to start. Its work is a command in the spec, a handler that the spec names, or Work. An
// external task has no work here: another program reports its outcome.
type TaskStart struct {
	SessionID protocol.SessionID `json:"sessionId,omitempty"`
	TaskID    protocol.TaskID    `json:"taskId,omitempty"` // empty: a new id
	Spec      protocol.TaskSpec  `json:"spec"`
	Ref       string             `json:"ref,omitempty"` // of an external task: its id in the other program
	Work      TaskFunc           `json:"-"`             // of an owner-bound task, which ends with the daemon
}

// TaskTransition reports that a task is idle or continues.
type TaskTransition struct {
	protocol.TaskParams
	State   protocol.TaskState `json:"state"`             // idle or running
	Waiting string             `json:"waiting,omitempty"` // what an idle task waits for
}

// TaskTold is a custom event of a task.
type TaskTold struct {
	protocol.TaskParams
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Key     string          `json:"key,omitempty"` // a repeated key adds no second event
}

// TaskFunc does the work of a task. It must return soon after ctx is done; its outcome still counts then. A nil outcome
// means success, or stopped if ctx was done.
type TaskFunc func(ctx context.Context, run *TaskRun) *protocol.TaskOutcome

// TaskRun is one attempt at a task.
type TaskRun struct {
	Task    protocol.Task     // as of the start of the attempt
	Host    Capabilities      // usable while the attempt runs
	Asked   <-chan struct{}   // closed when the task is asked to end; unless the task is cooperative, ctx is done too
	Signals <-chan TaskSignal // buffered until the work receives them
	Output  io.Writer         // text for people; not parsed
}

// TaskSignal is a signal that was sent to a task. Its spec declares the names.
type TaskSignal struct {
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// HandleError names a task that is not live or not visible to the session.
type HandleError struct{ TaskID protocol.TaskID }

func (e *HandleError) Error() string {
	return "task " + string(e.TaskID) + " is not live, or not visible to this session"
}

// TaskFailedError means that a hidden task failed, or that its outcome is unknown.
type TaskFailedError struct{ Task protocol.Task }

func (e *TaskFailedError) Error() string {
	why := string(e.Task.State)
	if o := e.Task.Outcome; o != nil && o.Message != "" {
		why += ": " + o.Message
	}
	return "hidden task " + string(e.Task.ID) + " has " + why
}

// handler identifies a task handler by its plugin and name.
type handler struct{ plugin, name string }

var (
	errUnnamedHandler = errors.New("registers a task handler without a name")
	errReadOnlyTasks  = &UnavailableError{"changing tasks"}
)

// TaskGroup registers the work of tasks.
type TaskGroup struct{ r *Registrar }

// Tasks returns the group that registers task handlers.
func (r *Registrar) Tasks() TaskGroup { return TaskGroup{r} }

// Handler registers the work of tasks whose spec names this plugin and this handler. A rerunnable task needs one,
// because lashd runs it again after a restart.
func (g TaskGroup) Handler(name string, f TaskFunc) {
	c, key := g.r.in(), handler{g.r.owner, name}
	if c.handlers == nil {
		c.handlers = map[handler]TaskFunc{}
	}
	switch {
	case missing(f):
		g.r.fail(errNil)
	case name == "":
		g.r.fail(errUnnamedHandler)
	case c.handlers[key] != nil:
		g.r.fail(fmt.Errorf("registers two task handlers named %q", name))
	default:
		c.handlers[key] = f
	}
}

// Handler returns the work that a plugin registered under a name; nil if there is none.
func (s *Session) Handler(plugin, name string) TaskFunc { return s.handlers[handler{plugin, name}] }

// Work runs the work of a task. It returns an error if the work panics, or if it is abandoned because it does not
// return soon after ctx is done.
func (s *Session) Work(ctx context.Context, plugin string, f TaskFunc, run *TaskRun) (*protocol.TaskOutcome, error) {
	run.Host = run.Host.limit(HookTask)
	return invoke(ctx, s.roster, HookTask, plugin, func() (*protocol.TaskOutcome, error) { return f(ctx, run), nil })
}

// NeedTasks returns the TaskService, or an UnavailableError.
func (c Capabilities) NeedTasks() (TaskService, error) { return need(c.Tasks, "tasks") }

// ValidateHandles is ValidateVisible, but succeeds without ids or without the capability. With TransferHandles and
// AwaitHidden it lets a context release its tasks whether or not it could have any.
func (c Capabilities) ValidateHandles(ctx context.Context, session protocol.SessionID, ids []protocol.TaskID) error {
	if c.Tasks == nil || len(ids) == 0 {
		return nil
	}
	return c.Tasks.ValidateVisible(ctx, session, ids)
}

// TransferHandles is TransferTasks, but succeeds without ids.
func (c Capabilities) TransferHandles(ctx context.Context, p *protocol.TaskTransferParams) ([]protocol.Task, error) {
	if len(p.TaskIDs) == 0 {
		return nil, nil
	}
	t, err := c.NeedTasks()
	if err != nil {
		return nil, err
	}
	return t.TransferTasks(ctx, p)
}

// AwaitHidden is TaskService.AwaitHidden. Without the capability there is nothing to wait for, and it succeeds.
func (c Capabilities) AwaitHidden(ctx context.Context, session protocol.SessionID) error {
	if c.Tasks == nil {
		return nil
	}
	return c.Tasks.AwaitHidden(ctx, session)
}
