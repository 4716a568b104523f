package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// taskCommand implements lash task. Ids of tasks may be shortened to a unique
// prefix in all of its commands.
type taskCommand struct {
	List   taskListCommand   `cmd:"" default:"withargs" help:"List tasks (default)."`
	Show   taskShowCommand   `cmd:"" help:"Show a task and its events."`
	Output taskOutputCommand `cmd:"" help:"Print the output of a task."`
	Wait   taskWaitCommand   `cmd:"" help:"Wait for tasks to end."`
	Signal taskSignalCommand `cmd:"" help:"Send a signal to a task, such as text for its stdin."`
	Cancel taskCancelCommand `cmd:"" help:"Cancel a task."`
}

// taskListCommand implements lash task list. Hidden tasks, which lashd runs for
// its own purposes or a plugin's, are not listed.
type taskListCommand struct {
	console.InJSON
	Session string `help:"Show only tasks visible to this session; lash session lists the ids." placeholder:"SESSION"`
	Kind    string `help:"Show only tasks of this kind: command, monitor, subagent, observer or other." placeholder:"KIND"`
	All     bool   `help:"Include ended tasks." short:"a"`
}

// Help is shown by --help.
func (taskListCommand) Help() string {
	return `A task is work that outlives the turn that started it. IF LASHD STOPS says what then happens to the task:
  runs again   the next lashd runs it again from the start
  ends         it ends, and its outcome is unknown if it had started
  continues    it runs outside lashd

Example: lash task list --all`
}

// Run prints the tasks: a table has the newest first, JSON the oldest. Without
// --all only running tasks are read.
// An empty list prints a note instead of a table.
func (c taskListCommand) Run(ctx context.Context, e *daemon.Environment) error {
	session, err := findSession(ctx, e, c.Session)
	if err != nil {
		return err
	}
	p := protocol.TaskListParams{SessionID: session, Kind: protocol.TaskKind(c.Kind), Live: !c.All}
	all, err := tasks(ctx, e, p)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(all)
	}
	switch {
	case len(all) > 0:
		return taskTable(all)
	case c.All:
		e.Note("no tasks")
	default:
		e.Note("no running tasks; --all includes ended tasks")
	}
	return nil
}

// taskTable prints a table of tasks.
func taskTable(all []protocol.Task) error {
	return table(taskRows(all), lessOfTask...)
}

// lessOfTask are the columns that a narrow terminal does not show, the least important first.
var lessOfTask = []string{"IF LASHD STOPS", "SESSION", "STARTED", "KIND"}

// taskRows returns a table of tasks with a header, newest first. all is in the
// order of the daemon, oldest first.
func taskRows(all []protocol.Task) [][]string {
	rows := [][]string{{"TASK", "SESSION", "KIND", "STATE", "IF LASHD STOPS", "STARTED", "LABEL"}}
	for _, t := range slices.Backward(all) {
		rows = append(rows, []string{
			console.OneLine(string(t.ID), 60), string(t.SessionID), string(t.Spec.Kind), console.OneLine(taskState(t), 60), ifStopped[t.Spec.Recovery],
			moment(t.StartedAtMs), console.OneLine(t.Spec.Label, 60),
		})
	}
	return rows
}

// ifStopped says what happens to a task when the daemon stops.
var ifStopped = map[protocol.TaskRecovery]string{protocol.RecoverRerun: "runs again", protocol.RecoverOwner: "ends", protocol.RecoverExternal: "continues"}

// eventWords are the events of tasks in words; others are one word already.
var eventWords = map[protocol.TaskEventKind]string{
	protocol.TaskGotRef: "got its id in the other system", protocol.TaskGotCancelRequest: "cancellation requested", protocol.TaskGotAbandonRequest: "end requested",
	protocol.TaskLostCaller: "the turn that started it ended", protocol.TaskGotObserver: "shown to another session",
	protocol.TaskLostObserver: "hidden from another session", protocol.TaskWasTransferred: "moved to another session", protocol.TaskTold: "reported",
}

// eventText returns an event of a task in words.
func eventText(ev *protocol.TaskEvent) string {
	return strings.TrimSpace(cmp.Or(eventWords[ev.Kind], string(ev.Kind)) + " " + ev.Name)
}

// taskState returns the state of a task with its exit code, its signal or the
// client that stopped it, such as "failed (exit code 2)".
func taskState(t protocol.Task) string {
	o := t.Outcome
	switch {
	case t.State == protocol.TaskCancelRequested:
		return "being cancelled"
	case o == nil:
		return string(t.State)
	case o.ExitCode != nil && o.Kind == protocol.TaskExited:
		return fmt.Sprintf("%s (exit code %d)", t.State, *o.ExitCode)
	case o.Kind == protocol.TaskSignal:
		return fmt.Sprintf("%s (%s)", t.State, o.Signal)
	case o.Kind == protocol.TaskStopped:
		return fmt.Sprintf("%s (by %s)", t.State, who(o.By))
	}
	return string(t.State)
}

// tasks returns all tasks that match p, oldest first. It reads them in pages of
// 1000. The result is never nil, so that JSON output is a list.
func tasks(ctx context.Context, e *daemon.Environment, p protocol.TaskListParams) ([]protocol.Task, error) {
	l, err := e.Dial(ctx, true, nil)
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

// ofTask are the arguments of commands about one task. Ids of tasks are unique
// only within a session, hence --session.
type ofTask struct {
	Task    string `arg:"" help:"Task; lash task lists the ids."`
	Session string `help:"Session that can see the task; needed only if several sessions have a task with this id." placeholder:"SESSION"`
}

// params looks the task up and returns the parameters that name it to the daemon.
// The errors are those of findTasks.
func (o ofTask) params(ctx context.Context, e *daemon.Environment) (protocol.TaskParams, error) {
	found, err := findTasks(ctx, e, o.Session, o.Task)
	if err != nil {
		return protocol.TaskParams{}, err
	}
	return found[0], nil
}

// findTasks looks up tasks by unique prefixes of their ids: among the tasks that
// session can see or, if session is empty, among all tasks. Ended tasks count as
// well. The results are in the order of texts. An id that several sessions have is
// a usage error without --session.
func findTasks(ctx context.Context, e *daemon.Environment, session string, texts ...string) (found []protocol.TaskParams, err error) {
	viewer, err := findSession(ctx, e, session)
	if err != nil {
		return nil, err
	}
	all, err := tasks(ctx, e, protocol.TaskListParams{SessionID: viewer, Hidden: true})
	if err != nil {
		return nil, err
	}
	var ids []protocol.TaskID
	owners := map[protocol.TaskID][]protocol.SessionID{}
	for _, t := range all {
		if owners[t.ID] = append(owners[t.ID], t.SessionID); len(owners[t.ID]) == 1 {
			ids = append(ids, t.ID)
		}
	}
	for _, text := range texts {
		id, err := byPrefix(text, "tsk_", "task", "lash task list --all", ids)
		switch {
		case err != nil:
			return nil, err
		case viewer == "" && len(owners[id]) > 1:
			return nil, console.Exit(console.ExitUsage, fmt.Errorf("several sessions have a task %s; choose one with --session", id))
		}
		found = append(found, protocol.TaskParams{SessionID: cmp.Or(viewer, owners[id][0]), TaskID: id})
	}
	return found, nil
}

// taskShowCommand implements lash task show.
type taskShowCommand struct {
	ofTask
	console.InJSON
}

// Help is shown by --help.
func (taskShowCommand) Help() string {
	return `Example: lash task show tsk_53a9d1c2b7e04f16`
}

// Run prints a task, the reason of its end if one is stored, and its first 1000
// events.
func (c taskShowCommand) Run(ctx context.Context, e *daemon.Environment) error {
	p, err := c.params(ctx, e)
	if err != nil {
		return err
	}
	var r protocol.TaskReadResult
	if err := e.Ask(ctx, "task/read", protocol.TaskReadParams{TaskParams: p, Limit: 1000}, &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r)
	}
	if err := taskTable([]protocol.Task{r.Task}); err != nil {
		return err
	}
	if o := r.Task.Outcome; o != nil && (o.Message != "" || o.Evidence != nil) {
		why := o.Message
		if o.Evidence != nil {
			why = o.Evidence.Reason
		}
		fmt.Fprintln(console.Stdout, console.OneLine(why, 200))
	}
	rows := [][]string{{"AT", "EVENT", "BY", "REASON"}}
	for _, ev := range r.Events {
		rows = append(rows, []string{moment(ev.AtMs), console.OneLine(eventText(&ev), 60), who(ev.By), console.OneLine(ev.Reason, 80)})
	}
	return table(rows, "BY", "AT")
}
