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

// TaskReadService looks at work that outlives a turn. Where no session is named, the hook's own is meant; a session sees its
// own tasks, those that it started, and those that it observes.
type TaskReadService interface {
	// ListTasks lists those that are not hidden, in the order of their newest changes. With the cursor of its answer it later
	// gives what has changed since.
	ListTasks(context.Context, *protocol.TaskListParams) (*protocol.TaskListResult, error)
	ReadTask(context.Context, *protocol.TaskReadParams) (*protocol.TaskReadResult, error)
	TaskOutput(context.Context, *protocol.TaskOutputParams) (*protocol.TaskOutputResult, error)
	// FollowTasks gives tasks whenever they change, beginning after the cursor, until ctx is done or the loop ends. Who is slow
	// misses no task, but sees only the newest of several changes of one.
	FollowTasks(context.Context, *protocol.TaskListParams) iter.Seq2[protocol.Task, error]
	// ValidateVisible fails with a HandleError unless all of them are listed and live.
	ValidateVisible(context.Context, protocol.SessionID, []protocol.TaskID) error
}

// TaskService runs work that outlives a turn. What cannot happen to a task any more, because it is over, is ignored by
// CompleteTask and TransitionTask, which then answer with the task as it is.
type TaskService interface {
	TaskReadService
	// StartTask makes a task durable and begins it as soon as there is room. The same id with the same spec is the task that
	// there is already.
	StartTask(context.Context, *TaskStart) (*protocol.TaskResult, error)
	// CompleteTask tells how an external task ended.
	CompleteTask(context.Context, *protocol.TaskCompleteParams) (protocol.Task, error)
	// TransitionTask tells that a running task waits for something, or goes on. An idle one has no place among those that work:
	// to go on it may have to wait for one.
	TransitionTask(context.Context, *TaskTransition) (protocol.Task, error)
	// TellTask has an event of its own happen to a task, one that its spec declares.
	TellTask(context.Context, *TaskTold) (protocol.Task, error)
	AwaitTasks(context.Context, *protocol.TaskWaitParams) (*protocol.TaskWaitResult, error)
	SignalTask(context.Context, *protocol.TaskSignalParams) (protocol.Task, error)
	// CancelTask asks that a task ends which the session sees. It may still complete.
	CancelTask(context.Context, *protocol.TaskCancelParams) (protocol.Task, error)
	// CancelTasks is CancelTask for all live tasks of a session that are not hidden and not kept.
	CancelTasks(context.Context, *protocol.TaskCancelAllParams) ([]protocol.Task, error)
	// TransferTasks gives live tasks to another session, all of them or none. What is over or unknown is no part of it.
	TransferTasks(context.Context, *protocol.TaskTransferParams) ([]protocol.Task, error)
	// AwaitHidden waits until no hidden task of a session is live, those included that begin meanwhile; of the one that calls
	// it only the others. It fails with the first TaskFailedError since it was called last, if there is one.
	AwaitHidden(context.Context, protocol.SessionID) error
}

// TaskStart is what a task is started with. Its work is a command of the spec, a handler of a plugin that the spec names, or
// Work; nobody here does that of an external one.
type TaskStart struct {
	SessionID protocol.SessionID `json:"sessionId,omitempty"`
	TaskID    protocol.TaskID    `json:"taskId,omitempty"` // empty: a new one
	Spec      protocol.TaskSpec  `json:"spec"`
	Ref       string             `json:"ref,omitempty"` // of an external one, outside
	Work      TaskFunc           `json:"-"`             // of an owner-bound one: it ends with the daemon
}

// TaskTransition is that a task waits, or goes on.
type TaskTransition struct {
	protocol.TaskParams
	State   protocol.TaskState `json:"state"`             // idle or running
	Waiting string             `json:"waiting,omitempty"` // for what, if it is idle
}

// TaskTold is an event of a task's own.
type TaskTold struct {
	protocol.TaskParams
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Key     string          `json:"key,omitempty"` // told again with the same key, it does not happen again
}

// TaskFunc is the work of a task. It returns soon after ctx is done; what it comes to then still counts. No outcome after that
// means that it was stopped, else that it is done.
type TaskFunc func(ctx context.Context, run *TaskRun) *protocol.TaskOutcome

// TaskRun is an attempt at a task.
type TaskRun struct {
	Task    protocol.Task     // as the attempt began
	Host    Capabilities      // those of a task, for as long as the attempt lasts
	Asked   <-chan struct{}   // closed once it is asked to end; unless it is cooperative, ctx is done then
	Signals <-chan TaskSignal // sent to it; they wait until they are taken
	Output  io.Writer         // what people read of it
}

// TaskSignal is something that was sent to a task, and is what its spec declares.
type TaskSignal struct {
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// HandleError names a task that a session does not see as live.
type HandleError struct{ TaskID protocol.TaskID }

func (e *HandleError) Error() string {
	return "task " + string(e.TaskID) + " is none that is live and visible here"
}

// TaskFailedError is a hidden task that failed, or of which nobody knows how it ended.
type TaskFailedError struct{ Task protocol.Task }

func (e *TaskFailedError) Error() string {
	why := string(e.Task.State)
	if o := e.Task.Outcome; o != nil && o.Message != "" {
		why += ": " + o.Message
	}
	return "hidden task " + string(e.Task.ID) + " has " + why
}

// handler is what a plugin registers under a name.
type handler struct{ plugin, name string }

var (
	errUnnamedHandler = errors.New("registers a handler of tasks without a name")
	errReadOnlyTasks  = &UnavailableError{"changing tasks"}
)

// TaskGroup takes the work of tasks.
type TaskGroup struct{ r *Registrar }

// Tasks is where the work of tasks is contributed.
func (r *Registrar) Tasks() TaskGroup { return TaskGroup{r} }

// Handler does the work of tasks whose spec names this plugin and this handler. It is what a rerunnable task needs, to be run
// again after a restart.
func (g TaskGroup) Handler(name string, f TaskFunc) {
	c, key := g.r.in(), handler{g.r.owner, name}
	if c.handlers == nil {
		c.handlers = map[handler]TaskFunc{}
	}
	switch {
	case missing(f):
		g.r.fail(errNothing)
	case name == "":
		g.r.fail(errUnnamedHandler)
	case c.handlers[key] != nil:
		g.r.fail(fmt.Errorf("registers two handlers of tasks named %q", name))
	default:
		c.handlers[key] = f
	}
}

// Handler is what does the work of tasks of a plugin; nil: it has no such handler.
func (s *Session) Handler(plugin, name string) TaskFunc { return s.handlers[handler{plugin, name}] }

// Work does the work of a task. It fails if the work panics, or is left alone, because it does not return although ctx is done.
func (s *Session) Work(ctx context.Context, plugin string, f TaskFunc, run *TaskRun) (*protocol.TaskOutcome, error) {
	run.Host = run.Host.limit(HookTask)
	return invoke(ctx, s.roster, HookTask, plugin, func() (*protocol.TaskOutcome, error) { return f(ctx, run), nil })
}

// NeedTasks is the TaskService, or an UnavailableError.
func (c Capabilities) NeedTasks() (TaskService, error) { return need(c.Tasks, "tasks") }

// The two that follow succeed without the capability where there is nothing to do: they are how a context lets go of tasks,
// whether or not it could have any.

// ValidateHandles is ValidateVisible; of nothing it always succeeds, and without tasks nothing is checked.
func (c Capabilities) ValidateHandles(ctx context.Context, session protocol.SessionID, ids []protocol.TaskID) error {
	if c.Tasks == nil || len(ids) == 0 {
		return nil
	}
	return c.Tasks.ValidateVisible(ctx, session, ids)
}

// TransferHandles is TransferTasks; of nothing it always succeeds.
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

// AwaitHidden is that of the TaskService; without one there is nothing to wait for.
func (c Capabilities) AwaitHidden(ctx context.Context, session protocol.SessionID) error {
	if c.Tasks == nil {
		return nil
	}
	return c.Tasks.AwaitHidden(ctx, session)
}
