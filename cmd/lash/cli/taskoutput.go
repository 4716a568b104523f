package cli

import (
	"context"
	"io"
	"os"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// taskOutputCommand implements lash task output, also for tasks that have ended.
type taskOutputCommand struct {
	ofTask
	Follow bool  `help:"Print new output until the task ends." short:"f"`
	Offset int64 `help:"First byte to print; a negative offset counts from the end." placeholder:"BYTES"`
}

// Help is shown by --help.
func (taskOutputCommand) Help() string {
	return `Example: lash task output -f tsk_53a9d1c2b7e04f16`
}

// Run prints the stored output in steps of 1 MiB. With --follow it waits for the
// end of the task, in steps of followPause, and prints new output in between.
// A note on stderr says if the daemon stored only the first part of the output.
func (c taskOutputCommand) Run(ctx context.Context, e *daemon.Environment) error {
	p, err := c.params(ctx, e)
	if err != nil {
		return err
	}
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	for at := c.Offset; ; {
		var r protocol.TaskOutputResult
		if err := l.Call(ctx, "task/output", protocol.TaskOutputParams{TaskParams: p, Offset: at, Limit: 1 << 20}, &r); err != nil {
			return err
		}
		if _, err := io.WriteString(console.Stdout, shownText(r.Text)); err != nil {
			return err
		}
		at = r.NextOffset
		switch {
		case at < r.Size && at > r.Offset:
		case r.Ended && r.Full:
			e.Note("the output was longer; only the first %d bytes are stored", r.Size)
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

// followPause is the time between two requests for new output.
const followPause = 200 * time.Millisecond

// shownText returns s unchanged, or with its control characters escaped if stdout
// is a terminal. Redirected output stays exact, so that it can be compared or
// parsed.
func shownText(s string) string {
	if console.Terminal(os.Stdout) {
		return console.Printable(s)
	}
	return s
}
