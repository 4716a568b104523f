package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/engine/driver/standard"
	"lashd/rpc/protocol"
)

// table prints rows in aligned columns, without trailing spaces. Each cell must be
// a single line. The first row is usually the header.
func table(rows [][]string) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(console.Stdout, strings.TrimRight(line, " \n"))
	}
	return nil
}

// sessionCommand implements lash session, without chat and run, which work in
// sessions.
type sessionCommand struct {
	List   sessionListCommand   `cmd:"" default:"withargs" help:"List sessions, newest first (default)."`
	Show   sessionShowCommand   `cmd:"" help:"Show a session and its newest messages."`
	Points sessionPointsCommand `cmd:"" help:"List the file points of a session."`
	Diff   sessionDiffCommand   `cmd:"" help:"Show the file changes of a session or a turn."`
	Undo   sessionUndoCommand   `cmd:"" help:"Restore files to their contents before a turn."`
	Delete sessionDeleteCommand `cmd:"" help:"Delete sessions permanently."`
}

// sessionListCommand implements lash session list. Archived sessions and
// subagents are not listed.
type sessionListCommand struct {
	console.InJSON
	All bool `help:"List all sessions, not only the newest 50."`
}

// Help is shown by --help.
func (sessionListCommand) Help() string {
	return `STATE is idle, running, or requiresAction if a decision waits for you. AGE is the time since the last change. DRIVER appears
if a session has another one than standard.

Example: lash session list --json`
}

// Run prints the sessions, newest first. A note on stderr says if older ones were
// left out.
func (c sessionListCommand) Run(ctx context.Context, e *daemon.Environment) error {
	sessions, more, err := c.sessions(ctx, e)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(sessions)
	}
	if more {
		e.Note("older sessions are not shown; --all lists them")
	}
	return table(listRows(sessions))
}

// listRows returns a table of sessions with its header. The column DRIVER is only there if a session has another
// driver than the standard one.
func listRows(sessions []protocol.Session) [][]string {
	drivers := slices.ContainsFunc(sessions, func(s protocol.Session) bool { return s.Config.Driver != standard.ID })
	row := func(id, state, age, turns, model, driver, dir, title string) []string {
		cells := []string{id, state, age, turns, model, driver, dir, title}
		if !drivers {
			cells = slices.Delete(cells, 5, 6)
		}
		return cells
	}
	rows := [][]string{row("SESSION", "STATE", "AGE", "TURNS", "MODEL", "DRIVER", "DIRECTORY", "TITLE")}
	for _, s := range sessions {
		rows = append(rows, row(string(s.ID), string(s.State), age(time.Since(time.UnixMilli(s.UpdatedAtMs))), fmt.Sprint(s.TurnIndex),
			console.OneLine(s.Config.Model.ID, 30), console.OneLine(s.Config.Driver, 20), console.OneLine(s.Cwd, 60), console.OneLine(s.Title, 60)))
	}
	return rows
}

// sessions reads one page of sessions, or all of them with --all. more reports
// whether there are further sessions. The result is never nil.
func (c sessionListCommand) sessions(ctx context.Context, e *daemon.Environment) (all []protocol.Session, more bool, err error) {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return nil, false, err
	}
	defer l.Close()
	all = []protocol.Session{}
	for cursor := ""; ; {
		var r protocol.SessionListResult
		if err := l.Call(ctx, "session/list", protocol.SessionListParams{Cursor: cursor}, &r); err != nil {
			return nil, false, err
		}
		all, cursor = append(all, r.Data...), r.NextCursor
		if cursor == "" || !c.All {
			return all, cursor != "", nil
		}
	}
}

// age formats a duration in its largest unit, such as "5m". Negative durations,
// from a changed clock, are "0s".
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// toolCommand implements lash tool, which shows what the model of a session has
// to work with.
type toolCommand struct {
	Session string `arg:"" help:"Session; lash session lists the ids."`
	console.InJSON
}

// Help is shown by --help.
func (toolCommand) Help() string {
	return `MEMBER shows whether the model may call the tool. REPLAY shows whether lashd may repeat an interrupted call. TOKENS is the
size of the tool's description in each prompt.

Example: lash tool ses_01a1fcf3708472b29ab5e2b2aa8e328f`
}

// Run prints the tools of a session, including those that the model may not call.
func (c toolCommand) Run(ctx context.Context, e *daemon.Environment) error {
	var r protocol.ToolListResult
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	id, err := sessionID(ctx, l, c.Session)
	if err != nil {
		return err
	}
	if err := l.Call(ctx, "tool/list", protocol.SessionParams{SessionID: id}, &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r.Data)
	}
	rows := [][]string{{"TOOL", "SOURCE", "MEMBER", "REPLAY", "TOKENS"}}
	for _, t := range r.Data {
		rows = append(rows, []string{console.OneLine(t.Name, 60), console.OneLine(t.Source, 30), fmt.Sprint(t.Member), string(t.Contract.Replay), fmt.Sprint(t.Tokens)})
	}
	return table(rows)
}
