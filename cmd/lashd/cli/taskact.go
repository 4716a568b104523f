package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lashd/rpc/protocol"
)

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
	if c.wantsJSON() {
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
	if c.wantsJSON() {
		return printJSON(r.Task)
	}
	return table(taskRows([]protocol.Task{r.Task}))
}
