package cli

import (
	"context"
	"fmt"
	"slices"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/engine/driver/standard"
	"lashd/rpc/protocol"
)

// sessionCommand implements lash session, without chat and run, which work in
// sessions.
type sessionCommand struct {
	List   sessionListCommand   `cmd:"" default:"withargs" help:"List sessions, newest first (default)."`
	Show   sessionShowCommand   `cmd:"" help:"Show a session and its newest messages."`
	Search sessionSearchCommand `cmd:"" help:"Find messages and titles by their words."`
	Rename sessionRenameCommand `cmd:"" help:"Set the title of a session."`
	Turns  sessionTurnsCommand  `cmd:"" help:"List the turns of a session."`
	Fork   sessionForkCommand   `cmd:"" help:"Copy a session, up to a turn."`
	Rewind sessionRewindCommand `cmd:"" help:"Go back to before a turn: the conversation, the files, or both."`
	Export sessionExportCommand `cmd:"" help:"Write a session as Markdown or JSON."`
	Import sessionImportCommand `cmd:"" help:"Create a session from an exported one."`
	Points sessionPointsCommand `cmd:"" help:"List the file changes of turns and undos, which undo can take back."`
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
	return `STATE is idle, running, or waiting for you if a question is open. CHANGED is the time of the last change. DRIVER appears
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
	if len(sessions) == 0 {
		e.Note("no sessions yet; to start one: lash")
		return nil
	}
	if more {
		e.Note("older sessions are not shown; --all lists them")
	}
	return table(listRows(sessions), lessOfSession...)
}

// lessOfSession are the columns that a narrow terminal does not show, the least important first.
var lessOfSession = []string{"MODEL", "DRIVER", "TURNS", "DIRECTORY", "STATE"}

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
	rows := [][]string{row("SESSION", "STATE", "CHANGED", "TURNS", "MODEL", "DRIVER", "DIRECTORY", "TITLE")}
	for _, s := range sessions {
		rows = append(rows, row(string(s.ID), stateOf(s.State), moment(s.UpdatedAtMs), fmt.Sprint(s.TurnIndex),
			console.OneLine(s.Config.Model.ID, 30), console.OneLine(s.Config.Driver, 20), console.OneLine(s.Cwd, 60), console.OneLine(s.Title, 60)))
	}
	return rows
}

// stateOf names the state of a session.
func stateOf(s protocol.SessionState) string {
	if s == protocol.SessionRequiresAction {
		return "waiting for you"
	}
	return string(s)
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
	return table(rows, "TOKENS", "REPLAY", "SOURCE")
}
