package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lashd/cmd/lashd/chat"
	"lashd/rpc/protocol"
)

func (d *demo) say(format string, args ...any) {
	d.line()
	fmt.Fprintf(stdout, "\n== "+format+"\n", args...)
}

// line ends the line of the text that streams, if there is one.
func (d *demo) line() {
	if d.midLine {
		fmt.Fprintln(stdout)
	}
	d.midLine = false
}

func (d *demo) aside(format string, args ...any) {
	d.line()
	fmt.Fprintln(stdout, "   ["+printable(fmt.Sprintf(format, args...))+"]")
}

// show prints what a person would see of an event.
func (d *demo) show(e protocol.Event) {
	switch e.Type {
	case protocol.EventItemStarted:
		if d.kind = e.Item.Kind; d.kind == protocol.ItemToolCall {
			d.aside("%s %s", e.Item.Tool, oneLine(readable(e.Item.Args), 100))
		}
	case protocol.EventItemDelta:
		if d.kind == protocol.ItemAgentMessage {
			fmt.Fprint(stdout, printable(e.Text))
			d.midLine = true
		}
	case protocol.EventRetryStatus:
		d.aside("%s", e.Retry)
	case protocol.EventDecisionOpened:
		d.aside("question: %s", e.Decision.Prompt)
	case protocol.EventDecisionResolved:
		d.aside("no answer in time: %s", chat.Answer(e.Decision))
	case protocol.EventTurnCompleted:
		d.aside("turn %s", map[bool]string{true: "finished", false: "ended: " + string(e.Outcome.Kind)}[e.Outcome.Finished()])
	}
}

func completed(e protocol.Event) bool { return e.Type == protocol.EventTurnCompleted }

func commandStarted(e protocol.Event) bool {
	return e.Type == protocol.EventItemStarted && e.Item.Kind == protocol.ItemToolCall && e.Item.Tool == "shell"
}

// until waits for an event that fits, or for the end of the turn, which is an error if the turn did not come to its answer.
func (d *demo) until(ctx context.Context, fits func(protocol.Event) bool) (ended bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("the demo waited 5 minutes for an event"))
	defer cancel()
	for {
		select {
		case e := <-d.news:
			switch {
			case completed(e) && !e.Outcome.Finished():
				return true, endedAs(e.Outcome, e.Issues)
			case fits(e) || completed(e):
				return completed(e), nil
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (d *demo) input(ctx context.Context, text string) error {
	fmt.Fprintf(stdout, "> %s\n", text)
	var r protocol.TurnStartResult
	return d.client.Call(ctx, "turn/start", protocol.TurnStartParams{
		Mutation: protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}, SessionID: d.session,
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}},
	}, &r)
}

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

// killWhileStreaming kills the daemon in the middle of an answer, unless a model was too quick for that.
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
	fmt.Fprintf(stdout, "   the command ran %d time(s)\n", d.runs())
	return nil
}

// runs is how often the slow command has begun.
func (d *demo) runs() int {
	count, _ := os.ReadFile(filepath.Join(d.workspace, "count.txt")) // not there: never
	return len(count)
}

// commandRuns waits until the command has begun; a file tells it, to whoever looks.
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

func (d *demo) fork(ctx context.Context) error {
	d.say("Forking the session: the fork shares the history and copies nothing")
	var r protocol.SessionNewResult
	if err := d.client.Call(ctx, "session/fork", protocol.SessionForkParams{SessionID: d.session}, &r); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "   %s shares %d history nodes with %s\n", r.SessionID, r.Session.Head.Generation+1, d.session)
	d.daemon.Process.Signal(syscall.SIGTERM)
	err := d.daemon.Wait()
	d.daemon = nil
	return err
}
