package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// statusCommand implements lash status. It never starts a daemon.
type statusCommand struct {
	console.InJSON
}

// Help is shown by --help.
func (statusCommand) Help() string {
	return `Shows whether lashd runs, and what it does. lash doctor checks the installation.

Exit codes: 0 it runs, 5 it does not run.

Example: lash status --json`
}

// shownStatus is the JSON output of lash status. Status is absent if no daemon runs.
type shownStatus struct {
	Running     bool                   `json:"running"`
	DataDir     string                 `json:"dataDir"`
	Socket      string                 `json:"socket"`
	Log         string                 `json:"log"`
	MemoryBytes int64                  `json:"memoryBytes,omitempty"`
	Status      *protocol.StatusResult `json:"status,omitempty"`
}

// Run prints the state of the daemon. Without one, the exit code says so.
func (c statusCommand) Run(ctx context.Context, e *daemon.Environment) error {
	shown, err := daemonStatus(ctx, e)
	if err != nil {
		return err
	}
	if c.JSON {
		err = console.PrintJSON(shown)
	} else {
		err = properties(statusRows(shown))
	}
	if err == nil && !shown.Running {
		return console.Exit(console.ExitNoDaemon, nil)
	}
	return err
}

// daemonStatus asks the daemon, if one runs.
func daemonStatus(ctx context.Context, e *daemon.Environment) (shownStatus, error) {
	shown := shownStatus{DataDir: e.Home, Socket: e.Socket, Log: e.LogFile()}
	l, err := e.Dial(ctx, false, nil)
	if notRunning(err) {
		return shown, nil
	}
	if err != nil {
		return shown, err
	}
	defer l.Close()
	var used protocol.DiagnosticsResult
	shown.Status = new(protocol.StatusResult)
	err = errors.Join(l.Call(ctx, "server/status", nil, shown.Status), l.Call(ctx, "server/diagnostics", nil, &used))
	shown.Running, shown.MemoryBytes = err == nil, used.RSSBytes
	return shown, err
}

// notRunning reports whether an error means that no daemon listens.
func notRunning(err error) bool {
	exit, ok := errors.AsType[*console.ExitError](err)
	return ok && exit.Code == console.ExitNoDaemon
}

// statusRows returns the state of the daemon as a table of names and values.
func statusRows(shown shownStatus) [][]string {
	rows := [][]string{{"lashd", "not running; commands that need it start it"}}
	if s := shown.Status; s != nil {
		rows = [][]string{
			{"lashd", fmt.Sprintf("running, version %s, pid %d, up %s", s.Version, s.Pid, span(time.Duration(s.UptimeMs)*time.Millisecond))},
			{"sessions", fmt.Sprintf("%d stored, %d in memory", s.Sessions, s.Loaded)},
			{"turns", fmt.Sprintf("%d running, %d questions wait for an answer", s.Running, s.Decisions)},
			{"memory", fmt.Sprintf("%d MiB", shown.MemoryBytes>>20)},
			{"database", s.Store},
		}
	}
	return append(rows, []string{"directory", shown.DataDir}, []string{"socket", shown.Socket}, []string{"log", shown.Log})
}

// stopCommand implements lash stop.
type stopCommand struct{}

// Help is shown by --help.
func (stopCommand) Help() string {
	return `Stops lashd and waits until it has exited. Turns that run continue at the next start, and questions wait. Background commands end;
detached ones keep running. Any command that needs lashd starts it again, and so do open chats and editors.

Example: lash stop`
}

// Run stops the daemon and says what its next start continues. Without a daemon it does nothing.
func (stopCommand) Run(ctx context.Context, e *daemon.Environment) error {
	e.Warned = true // the remedy for another version is this command
	l, err := e.Dial(ctx, false, nil)
	if notRunning(err) {
		e.Note("lashd is not running")
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Close()
	var s protocol.StatusResult
	if err := l.Call(ctx, "server/status", nil, &s); err != nil {
		return err
	}
	var tasks protocol.TaskListResult
	if err := l.Call(ctx, "task/list", protocol.TaskListParams{Kind: protocol.TaskCommand, Live: true, Limit: 1000}, &tasks); err != nil {
		return err
	}
	next, err := e.Stop(ctx, l, s.Pid)
	if err != nil {
		return err
	}
	e.Note("stopped lashd %s (pid %d); %s%s", s.Version, s.Pid, continuesLater(&s), endedCommands(tasks.Data))
	if next != 0 {
		e.Note("a chat or another client has started it again (pid %d); to keep it stopped, close these first", next)
	}
	return nil
}

// endedCommands says which of the running background commands ended with the daemon, "" for none. Detached commands did not.
func endedCommands(all []protocol.Task) string {
	all = slices.DeleteFunc(all, func(t protocol.Task) bool { return t.Spec.Recovery != protocol.RecoverOwner })
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s: %s", plural(len(all), "background command was ended", "background commands were ended"), console.OneLine(all[0].Spec.Label, 60))
}

// continuesLater says what the next start of the daemon continues.
func continuesLater(s *protocol.StatusResult) string {
	switch {
	case s.Running == 0 && s.Decisions == 0:
		return "no turn was running"
	case s.Decisions == 0:
		return fmt.Sprintf("%s at the next start", plural(s.Running, "turn continues", "turns continue"))
	}
	return fmt.Sprintf("%s at the next start, and %s", plural(s.Running, "turn continues", "turns continue"), plural(s.Decisions, "question waits", "questions wait"))
}

// plural returns a number and its words: those for one, or those for other numbers.
func plural(n int, one, other string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", other)
}
