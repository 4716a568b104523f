package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lashd/cmd/internal/console"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// say prints the headline of an act on a line of its own.
func (d *demo) say(format string, args ...any) {
	d.line()
	fmt.Fprintf(console.Stdout, "\n== "+format+"\n", args...)
}

// line ends an unfinished line of streamed text.
func (d *demo) line() {
	if d.midLine {
		fmt.Fprintln(console.Stdout)
	}
	d.midLine = false
}

// aside prints a remark in brackets, such as a tool call, on a line of its own.
func (d *demo) aside(format string, args ...any) {
	d.line()
	fmt.Fprintln(console.Stdout, "   ["+console.Printable(fmt.Sprintf(format, args...))+"]")
}

// show prints an event as a chat would, but shorter. Most event types print
// nothing.
func (d *demo) show(e protocol.Event) {
	switch e.Type {
	case protocol.EventItemStarted:
		if d.kind = e.Item.Kind; d.kind == protocol.ItemToolCall {
			d.aside("%s %s", e.Item.Tool, console.OneLine(termtext.Args(e.Item.Args), 100))
		}
	case protocol.EventItemDelta:
		if d.kind == protocol.ItemAgentMessage {
			fmt.Fprint(console.Stdout, console.Printable(e.Text))
			d.midLine = true
		}
	case protocol.EventRetryStatus:
		d.aside("%s", e.Retry)
	case protocol.EventDecisionOpened:
		d.aside("question: %s", e.Decision.Prompt)
	case protocol.EventDecisionResolved:
		d.aside("no answer in time: the model checks what the command did")
	case protocol.EventTurnCompleted:
		d.aside("turn %s", map[bool]string{true: "finished", false: "ended: " + string(e.Outcome.Kind)}[e.Outcome.Finished()])
	}
}

// completed reports whether e ends a turn.
func completed(e protocol.Event) bool { return e.Type == protocol.EventTurnCompleted }

// commandStarted reports whether e starts a shell command. The command itself
// starts a little later.
func commandStarted(e protocol.Event) bool {
	return e.Type == protocol.EventItemStarted && e.Item.Kind == protocol.ItemToolCall && e.Item.Tool == "shell"
}

// failed returns the error of a turn that did not finish.
func failed(e protocol.Event) error {
	why := e.Outcome.Text
	for _, issue := range e.Issues {
		why = cmp.Or(why, issue.Message)
	}
	return fmt.Errorf("the turn failed: %s (%s)", why, e.Outcome.Kind)
}

// until waits for an event that fits, or for the end of the turn, at most five
// minutes. ended reports which of the two it was. It returns an error if the turn
// did not finish.
func (d *demo) until(ctx context.Context, fits func(protocol.Event) bool) (ended bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("the demo waited 5 minutes for an event"))
	defer cancel()
	for {
		select {
		case e := <-d.news:
			switch {
			case completed(e) && !e.Outcome.Finished():
				return true, failed(e)
			case fits(e) || completed(e):
				return completed(e), nil
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// input prints a prompt and starts a turn with it. It returns when the turn is
// stored.
func (d *demo) input(ctx context.Context, text string) error {
	fmt.Fprintf(console.Stdout, "> %s\n", text)
	var r protocol.TurnStartResult
	return d.client.Call(ctx, "turn/start", protocol.TurnStartParams{
		Mutation: protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}, SessionID: d.session,
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}},
	}, &r)
}

// work is the first act: a turn that edits a file.
func (d *demo) work(ctx context.Context) error {
	d.say("Starting a daemon, and a session in %s", d.workspace)
	if err := d.start(ctx); err != nil {
		return err
	}
	var r protocol.SessionNewResult
	err := d.client.Call(ctx, "session/new", protocol.SessionNewParams{
		Cwd: d.workspace, Unknown: &protocol.UnknownOutcomeRule{DeadlineMs: new(int64)},
	}, &r)
	if err != nil {
		return err
	}
	d.session = r.SessionID
	if err := d.input(ctx, "Fix the typo in greeting.txt and show me the file."); err != nil {
		return err
	}
	_, err = d.until(ctx, completed)
	return err
}

// killWhileStreaming is the second act: it kills the daemon after twelve pieces of
// an answer. A fast model may finish the turn before.
func (d *demo) killWhileStreaming(ctx context.Context) error {
	d.say("Killing the daemon with SIGKILL during the next reply")
	if err := d.input(ctx, "Tell me a story about durability."); err != nil {
		return err
	}
	pieces := 0
	ended, err := d.until(ctx, func(e protocol.Event) bool {
		if e.Type == protocol.EventItemDelta {
			pieces++
		}
		return pieces >= 12
	})
	if err != nil {
		return err
	}
	d.kill()
	if ended {
		d.say("Killed just after the turn ended. Restarting the daemon: the whole turn is stored")
		return d.start(ctx)
	}
	d.say("Killed. Restarting the daemon: the turn continues and finishes once")
	if err := d.start(ctx); err != nil {
		return err
	}
	_, err = d.until(ctx, completed)
	return err
}

// killWhileCommandRuns is the third act: it kills the daemon while a command runs,
// and shows that the next one does not run the command again.
func (d *demo) killWhileCommandRuns(ctx context.Context) error {
	d.say("Killing the daemon while a command runs")
	if err := d.input(ctx, "Run the slow command: printf x >> count.txt; sleep 30"); err != nil {
		return err
	}
	ended, err := d.until(ctx, commandStarted)
	if err != nil {
		return err
	}
	if ended {
		d.aside("the model did not run the command")
		return nil
	}
	if err := d.commandRuns(ctx); err != nil {
		return err
	}
	d.kill()
	d.say("Killed. The outcome of the command is unknown, so lashd does not run it again: it tells the model")
	if err := d.start(ctx); err != nil {
		return err
	}
	if _, err := d.until(ctx, completed); err != nil {
		return err
	}
	d.line()
	fmt.Fprintf(console.Stdout, "   the command ran %d time(s)\n", d.runs())
	return nil
}

// runs returns how often the slow command has started: each run adds one byte to
// count.txt.
func (d *demo) runs() int {
	count, _ := os.ReadFile(filepath.Join(d.workspace, "count.txt")) // no file: never started
	return len(count)
}

// commandRuns waits until the slow command has started, which it records in a
// file, at most ten seconds.
func (d *demo) commandRuns(ctx context.Context) error {
	for limit := time.Now().Add(10 * time.Second); d.runs() == 0; {
		if time.Now().After(limit) {
			return errors.New("the command did not start within 10 seconds")
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// fork is the last act: it forks the session and stops the daemon with SIGTERM.
func (d *demo) fork(ctx context.Context) error {
	d.say("Forking the session: the fork shares the history and copies nothing")
	var r protocol.SessionNewResult
	if err := d.client.Call(ctx, "session/fork", protocol.SessionForkParams{SessionID: d.session}, &r); err != nil {
		return err
	}
	fmt.Fprintf(console.Stdout, "   %s shares %d history nodes with %s\n", r.SessionID, r.Session.Head.Generation+1, d.session)
	d.daemon.Process.Signal(syscall.SIGTERM)
	err := d.daemon.Wait()
	d.daemon = nil
	return err
}
