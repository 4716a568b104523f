package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"lashd/rpc/protocol"
)

type taskCommand struct {
	List   taskListCommand   `cmd:"" default:"withargs" help:"List tasks; the default."`
	Read   taskReadCommand   `cmd:"" help:"Show a task and what happened to it."`
	Output taskOutputCommand `cmd:"" help:"Print what a task has put out."`
	Wait   taskWaitCommand   `cmd:"" help:"Wait for the end of tasks."`
	Signal taskSignalCommand `cmd:"" help:"Send something to a task, such as text to its input."`
	Cancel taskCancelCommand `cmd:"" help:"Ask that a task ends."`
}

type taskListCommand struct {
	inJSON
	Session string `help:"Only those that this session sees; lashd session lists sessions." placeholder:"SESSION"`
	Kind    string `help:"Only those of a kind: command, monitor, subagent, observer or other." placeholder:"KIND"`
	All     bool   `help:"Also those that are over." short:"a"`
}

// Help is shown by --help.
func (taskListCommand) Help() string {
	return `A task is work that outlives a turn. RECOVERY is what becomes of it when lashd ends while it runs: rerunnable, it is run again; ownerBound,
it is abandoned; external, it runs elsewhere.

Example: lashd task list --all`
}

func (c taskListCommand) Run(ctx context.Context, e *environment) error {
	p := protocol.TaskListParams{SessionID: protocol.SessionID(c.Session), Kind: protocol.TaskKind(c.Kind), Live: !c.All}
	all, err := tasks(ctx, e, p)
	if err != nil {
		return err
	}
	if wantsJSON(c.JSON) {
		return printJSON(all)
	}
	if len(all) == 0 {
		e.note("there are no tasks; --all shows those that are over, too")
		return nil
	}
	return table(taskRows(all))
}

func taskRows(all []protocol.Task) [][]string {
	rows := [][]string{{"TASK", "SESSION", "KIND", "STATE", "RECOVERY", "STARTED", "LABEL"}}
	for _, t := range slices.Backward(all) {
		rows = append(rows, []string{
			oneLine(string(t.ID), 60), string(t.SessionID), string(t.Spec.Kind), oneLine(taskState(t), 60), string(t.Spec.Recovery),
			moment(t.StartedAtMs), oneLine(t.Spec.Label, 60),
		})
	}
	return rows
}

// taskState is a state with what a person wants to know of it.
func taskState(t protocol.Task) string {
	o := t.Outcome
	switch {
	case o == nil:
		return string(t.State)
	case o.ExitCode != nil && o.Kind == protocol.TaskExited:
		return fmt.Sprintf("%s (exit code %d)", t.State, *o.ExitCode)
	case o.Kind == protocol.TaskSignal:
		return fmt.Sprintf("%s (%s)", t.State, o.Signal)
	case o.Kind == protocol.TaskStopped:
		return fmt.Sprintf("%s (by %s)", t.State, o.By)
	}
	return string(t.State)
}

func tasks(ctx context.Context, e *environment, p protocol.TaskListParams) ([]protocol.Task, error) {
	l, err := e.dial(ctx, true, nil)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	all := []protocol.Task{}
	for p.Limit = 1000; ; {
		var r protocol.TaskListResult
		if err := l.Call(ctx, "task/list", p, &r); err != nil {
			return nil, err
		}
		all, p.Cursor = append(all, r.Data...), r.NextCursor
		if !r.More {
			return all, nil
		}
	}
}

// ofTask names a task.
type ofTask struct {
	Task    string `arg:"" help:"Id of the task; lashd task lists them."`
	Session string `help:"Session that sees it; needed only if tasks of several sessions have this id." placeholder:"SESSION"`
}

func (o ofTask) params(ctx context.Context, e *environment) (protocol.TaskParams, error) {
	found, err := findTasks(ctx, e, o.Session, o.Task)
	if err != nil {
		return protocol.TaskParams{}, err
	}
	return found[0], nil
}

// findTasks are tasks by their ids, which are a session's.
func findTasks(ctx context.Context, e *environment, session string, ids ...string) (found []protocol.TaskParams, err error) {
	var all []protocol.Task
	if session == "" {
		if all, err = tasks(ctx, e, protocol.TaskListParams{Hidden: true}); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		p := protocol.TaskParams{SessionID: protocol.SessionID(session), TaskID: protocol.TaskID(id)}
		for _, t := range all {
			switch {
			case t.ID != p.TaskID:
			case p.SessionID != "":
				return nil, &exitError{exitUsage, fmt.Errorf("several sessions have a task %s; --session says which", id)}
			default:
				p.SessionID = t.SessionID
			}
		}
		if p.SessionID == "" {
			return nil, fmt.Errorf("there is no task %s; lashd task list --all lists them", id)
		}
		found = append(found, p)
	}
	return found, nil
}

type taskReadCommand struct {
	ofTask
	inJSON
}

// Help is shown by --help.
func (taskReadCommand) Help() string {
	return `Example: lashd task read tsk_53a9d1c2b7e04f16`
}

func (c taskReadCommand) Run(ctx context.Context, e *environment) error {
	p, err := c.params(ctx, e)
	if err != nil {
		return err
	}
	var r protocol.TaskReadResult
	if err := e.ask(ctx, "task/read", protocol.TaskReadParams{TaskParams: p, Limit: 1000}, &r); err != nil {
		return err
	}
	if wantsJSON(c.JSON) {
		return printJSON(r)
	}
	if err := table(taskRows([]protocol.Task{r.Task})); err != nil {
		return err
	}
	if o := r.Task.Outcome; o != nil && (o.Message != "" || o.Evidence != nil) {
		why := o.Message
		if o.Evidence != nil {
			why = o.Evidence.Reason
		}
		fmt.Fprintln(stdout, oneLine(why, 200))
	}
	rows := [][]string{{"AT", "EVENT", "BY", "REASON"}}
	for _, ev := range r.Events {
		rows = append(rows, []string{moment(ev.AtMs), oneLine(string(ev.Kind)+" "+ev.Name, 60), cmp.Or(oneLine(ev.By, 60), "-"), oneLine(ev.Reason, 80)})
	}
	return table(rows)
}

type taskOutputCommand struct {
	ofTask
	Follow bool  `help:"Go on until the task is over." short:"f"`
	Offset int64 `help:"First byte; negative: from the end." placeholder:"BYTES"`
}

// Help is shown by --help.
func (taskOutputCommand) Help() string {
	return `Example: lashd task output -f tsk_53a9d1c2b7e04f16`
}

func (c taskOutputCommand) Run(ctx context.Context, e *environment) error {
	p, err := c.params(ctx, e)
	if err != nil {
		return err
	}
	l, err := e.dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	for at := c.Offset; ; {
		var r protocol.TaskOutputResult
		if err := l.Call(ctx, "task/output", protocol.TaskOutputParams{TaskParams: p, Offset: at, Limit: 1 << 20}, &r); err != nil {
			return err
		}
		if _, err := io.WriteString(stdout, shownText(r.Text)); err != nil {
			return err
		}
		at = r.NextOffset
		switch {
		case at < r.Size && at > r.Offset:
		case r.Ended && r.Full:
			e.note("there was more; what came after %d bytes is not kept", r.Size)
			return nil
		case r.Ended, !c.Follow:
			return nil
		default:
			wait := protocol.TaskWaitParams{SessionID: p.SessionID, TaskIDs: []protocol.TaskID{p.TaskID}, TimeoutMs: followPause.Milliseconds()}
			if err := l.Call(ctx, "task/wait", wait, nil); err != nil {
				return err
			}
		}
	}
}

// followPause is how long what a task puts out may wait to be shown.
const followPause = 200 * time.Millisecond

// shownText is an output as it is, unless a person's terminal would obey what is in it.
func shownText(s string) string {
	if terminal(os.Stdout) {
		return printable(s)
	}
	return s
}

type taskWaitCommand struct {
	Tasks   []string      `arg:"" help:"Ids of the tasks; lashd task lists them."`
	Session string        `help:"Session that sees them; needed only if tasks of several sessions have these ids." placeholder:"SESSION"`
	First   bool          `help:"Wait only for the first."`
	Timeout time.Duration `help:"Give up after this time; the tasks go on." placeholder:"DURATION"`
	inJSON
}

// Help is shown by --help.
func (taskWaitCommand) Help() string {
	return `Exit codes: 0 all that ended are completed, 1 one of them is not, or the time was up.

Example: lashd task wait --timeout 10m tsk_53a9d1c2b7e04f16`
}

func (c taskWaitCommand) Run(ctx context.Context, e *environment) error {
	found, err := findTasks(ctx, e, c.Session, c.Tasks...)
	if err != nil {
		return err
	}
	p := protocol.TaskWaitParams{SessionID: found[0].SessionID, TimeoutMs: c.Timeout.Milliseconds()}
	for _, t := range found {
		if t.SessionID != p.SessionID {
			return &exitError{exitUsage, fmt.Errorf("tasks %s and %s are of different sessions; --session names one that sees both", found[0].TaskID, t.TaskID)}
		}
		p.TaskIDs = append(p.TaskIDs, t.TaskID)
	}
	if c.First {
		p.Rule = protocol.WaitFirst
	}
	var r protocol.TaskWaitResult
	if err := e.ask(ctx, "task/wait", p, &r); err != nil {
		return err
	}
	if wantsJSON(c.JSON) {
		err = printJSON(r)
	} else {
		err = table(taskRows(append(r.Live, r.Settled...)))
	}
	return cmp.Or(err, waited(&r))
}

// waited is why a wait is no success.
func waited(r *protocol.TaskWaitResult) error {
	if r.TimedOut {
		return fmt.Errorf("the time is up, and %d tasks go on", len(r.Live))
	}
	for _, t := range r.Settled {
		if t.State != protocol.TaskCompleted {
			return fmt.Errorf("task %s is %s", t.ID, taskState(t))
		}
	}
	return nil
}

type taskSignalCommand struct {
	ofTask
	Name    string `arg:"" help:"What to send; a command takes stdin, closeStdin, interrupt and, with a terminal, resize."`
	Payload string `arg:"" optional:"" help:"What goes with it, as JSON."`
}

// Help is shown by --help.
func (taskSignalCommand) Help() string {
	return `Example: lashd task signal tsk_53a9d1c2b7e04f16 stdin '{"text":"yes\n"}'`
}

func (c taskSignalCommand) Run(ctx context.Context, e *environment) error {
	if c.Payload != "" && !json.Valid([]byte(c.Payload)) {
		return &exitError{exitUsage, fmt.Errorf("the payload is not JSON: %s", c.Payload)}
	}
	p, err := c.params(ctx, e)
	if err != nil {
		return err
	}
	return e.ask(ctx, "task/signal", protocol.TaskSignalParams{TaskParams: p, Name: c.Name, Payload: json.RawMessage(c.Payload)}, nil)
}

type taskCancelCommand struct {
	ofTask
	Reason string `help:"Why, for those who ask later." placeholder:"TEXT"`
	inJSON
}

// Help is shown by --help.
func (taskCancelCommand) Help() string {
	return `That a task was asked to end does not mean that it has; it may still complete. lashd task wait waits for that.

Example: lashd task cancel tsk_53a9d1c2b7e04f16`
}

func (c taskCancelCommand) Run(ctx context.Context, e *environment) error {
	p, err := c.params(ctx, e)
	if err != nil {
		return err
	}
	var r protocol.TaskResult
	if err := e.ask(ctx, "task/cancel", protocol.TaskCancelParams{TaskParams: p, Reason: c.Reason}, &r); err != nil {
		return err
	}
	if wantsJSON(c.JSON) {
		return printJSON(r.Task)
	}
	return table(taskRows([]protocol.Task{r.Task}))
}
