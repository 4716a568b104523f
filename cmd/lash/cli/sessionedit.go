package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/turns"
	"lashd/rpc/protocol"
)

// sessionRenameCommand implements lash session rename.
type sessionRenameCommand struct {
	Session string   `arg:"" help:"Session; lash session lists the ids."`
	Title   []string `arg:"" help:"New title."`
}

// Help is shown by --help.
func (sessionRenameCommand) Help() string {
	return "Example: lash session rename ses_01a1fcf3 Fix the parser"
}

// Run sets the title.
func (c sessionRenameCommand) Run(ctx context.Context, e *daemon.Environment) error {
	title := strings.TrimSpace(strings.Join(c.Title, " "))
	if title == "" {
		return console.Exit(console.ExitUsage, errors.New("the title is empty; give the session a name"))
	}
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	id, err := sessionID(ctx, l, c.Session)
	if err != nil {
		return err
	}
	if err := l.Call(ctx, "session/setTitle", protocol.SessionSetTitleParams{SessionID: id, Title: title}, nil); err != nil {
		return err
	}
	e.Note("renamed %s to %q", shortID(id), title)
	return nil
}

// sessionForkCommand implements lash session fork.
type sessionForkCommand struct {
	Session string `arg:"" help:"Session to copy; lash session lists the ids."`
	At      string `help:"Last turn of the copy: its number or id; lash session turns lists them (default: the newest)." placeholder:"TURN"`
	Title   string `help:"Title of the copy (default: that of the session)." placeholder:"TITLE"`
	console.InJSON
}

// Help is shown by --help.
func (sessionForkCommand) Help() string {
	return `Creates a session with the same history, which then goes its own way. Files are not copied, and only the original
can undo the file changes of its turns. The id of the new session is printed.

Example: lash run --session $(lash session fork ses_01a1fcf3) 'try it with a map instead'`
}

// Run copies the session and prints the id of the copy.
func (c sessionForkCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	p := protocol.SessionForkParams{Title: c.Title}
	if p.SessionID, err = sessionID(ctx, l, c.Session); err != nil {
		return err
	}
	if c.At != "" {
		if p.AtNode, err = nodeAt(ctx, l, p.SessionID, c.At); err != nil {
			return err
		}
	}
	var r protocol.SessionNewResult
	if err := l.Call(ctx, "session/fork", p, &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r)
	}
	_, err = fmt.Fprintln(console.Stdout, r.SessionID)
	return err
}

// nodeAt returns the node that text names: the last one of a turn, or a node by its id, which may be on a branch that a rewind left.
func nodeAt(ctx context.Context, l *daemon.Link, id protocol.SessionID, text string) (protocol.NodeID, error) {
	if strings.HasPrefix(text, "nod_") {
		return protocol.NodeID(text), nil
	}
	list, err := readTurns(ctx, l, id)
	if err != nil {
		return "", err
	}
	turn, err := turnNamed(list, id, text)
	if err != nil {
		return "", err
	}
	return turns.LastNode(caller(ctx, l), id, turn.ID)
}
