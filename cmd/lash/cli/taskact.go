package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// taskWaitCommand implements lash task wait, which scripts use to wait for
// background work.
type taskWaitCommand struct {
	Tasks   []string `arg:"" help:"Tasks; lash task lists the ids."`
	Session string   `help:"Session that can see the tasks; needed only if several sessions have tasks with these ids." placeholder:"SESSION"`
	First   bool     `help:"Wait for only one task to end."`
	Timeout timeSpan `help:"Stop waiting after this time, such as 10m; the tasks continue." placeholder:"DURATION"`
	console.InJSON
}

// Help is shown by --help.
func (taskWaitCommand) Help() string {
	return `Exit codes: 0 every ended task completed, 1 a task did not complete, or the wait timed out.

Example: lash task wait --timeout 10m tsk_53a9d1c2b7e04f16`
}

// Run waits in the daemon until the tasks end. All of them must be visible to one
// session.
// It prints the tasks also if the wait timed out, and fails then.
func (c taskWaitCommand) Run(ctx context.Context, e *daemon.Environment) error {
	found, err := findTasks(ctx, e, c.Session, c.Tasks...)
	if err != nil {
		return err
	}
	p := protocol.TaskWaitParams{SessionID: found[0].SessionID, TimeoutMs: c.Timeout.Milliseconds()}
	for _, t := range found {
		if t.SessionID != p.SessionID {
			return console.Exit(console.ExitUsage, fmt.Errorf("tasks %s and %s belong to different sessions; choose a session that can see both with --session", found[0].TaskID, t.TaskID))
		}
		p.TaskIDs = append(p.TaskIDs, t.TaskID)
	}
	if c.First {
		p.Rule = protocol.WaitFirst
	}
	var r protocol.TaskWaitResult
	if err := e.AskDoing(ctx, "waiting for "+plural(len(found), "task", "tasks"), "Ctrl-C stops waiting; tasks continue", "task/wait", p, &r); err != nil {
		return err
	}
	if c.JSON {
		err = console.PrintJSON(r)
	} else {
		err = taskTable(append(r.Live, r.Settled...))
	}
	return cmp.Or(err, waited(&r))
}

// waited returns an error if a wait timed out or a task did not complete. A nil
// result means that every ended task completed.
func waited(r *protocol.TaskWaitResult) error {
	if r.TimedOut {
		return fmt.Errorf("timed out; %d tasks are still running", len(r.Live))
	}
	for _, t := range r.Settled {
		if t.State != protocol.TaskCompleted {
			return fmt.Errorf("task %s is %s", t.ID, taskState(t))
		}
	}
	return nil
}

// taskSignalCommand implements lash task signal. Which signals a task accepts is
// up to its kind.
type taskSignalCommand struct {
	ofTask
	Name    string `arg:"" help:"Signal name. Commands accept stdin, closeStdin, interrupt and, with a terminal, resize."`
	Payload string `arg:"" optional:"" help:"Payload as JSON."`
}

// Help is shown by --help.
func (taskSignalCommand) Help() string {
	return `Example: lash task signal tsk_53a9d1c2b7e04f16 stdin '{"text":"yes\n"}'`
}

// Run sends the signal. The daemon rejects a signal that the task does not accept.
func (c taskSignalCommand) Run(ctx context.Context, e *daemon.Environment) error {
	if c.Payload != "" && !json.Valid([]byte(c.Payload)) {
		return console.Exit(console.ExitUsage, fmt.Errorf("the payload is not valid JSON: %s", c.Payload))
	}
	p, err := c.params(ctx, e)
	if err != nil {
		return err
	}
	if err := e.Ask(ctx, "task/signal", protocol.TaskSignalParams{TaskParams: p, Name: c.Name, Payload: json.RawMessage(c.Payload)}, nil); err != nil {
		return err
	}
	e.Note("sent %s to the task %s", c.Name, shortID(p.TaskID))
	return nil
}

// taskCancelCommand implements lash task cancel.
type taskCancelCommand struct {
	ofTask
	Reason string `help:"Reason to store with the task." placeholder:"TEXT"`
	console.InJSON
}

// Help is shown by --help.
func (taskCancelCommand) Help() string {
	return `Requests cancellation and returns at once. The task may still complete; wait for it with lash task wait.

Example: lash task cancel tsk_53a9d1c2b7e04f16`
}

// Run requests the cancellation and prints the task, which may still be running at
// that time.
func (c taskCancelCommand) Run(ctx context.Context, e *daemon.Environment) error {
	p, err := c.params(ctx, e)
	if err != nil {
		return err
	}
	var r protocol.TaskResult
	if err := e.Ask(ctx, "task/cancel", protocol.TaskCancelParams{TaskParams: p, Reason: c.Reason}, &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r.Task)
	}
	return taskTable([]protocol.Task{r.Task})
}
