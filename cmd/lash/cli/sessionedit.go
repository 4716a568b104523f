package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
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
	e.Note("renamed %s to %q", id, title)
	return nil
}

// sessionForkCommand implements lash session fork.
type sessionForkCommand struct {
	Session string `arg:"" help:"Session to copy; lash session lists the ids."`
	At      string `help:"Last turn of the copy; the turns are in lash call turn/list (default: the newest)." placeholder:"TURN"`
	Title   string `help:"Title of the copy (default: that of the session)." placeholder:"TITLE"`
	console.InJSON
}

// Help is shown by --help.
func (sessionForkCommand) Help() string {
	return `Creates a session with the same history, which then goes its own way. Files are not copied. The id of the new session is printed.

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
		if p.AtNode, err = lastNode(ctx, l, p.SessionID, c.At); err != nil {
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

// lastNode returns the last node of the turn that text names: an id or a unique prefix. It looks in the history, newest turns first.
func lastNode(ctx context.Context, l *daemon.Link, id protocol.SessionID, text string) (protocol.NodeID, error) {
	nodes := map[protocol.TurnID]protocol.NodeID{}
	var turns []protocol.TurnID
	for p := (protocol.GraphReadParams{SessionID: id}); ; {
		var r protocol.GraphReadResult
		if err := l.Call(ctx, "graph/read", p, &r); err != nil {
			return "", err
		}
		for _, n := range slices.Backward(r.Data) {
			if _, known := nodes[n.TurnID]; !known && n.TurnID != "" {
				turns, nodes[n.TurnID] = append(turns, n.TurnID), n.ID
			}
		}
		if p.Cursor = r.NextCursor; p.Cursor == "" {
			break
		}
	}
	turn, err := byPrefix(text, "trn_", "turn", "lash call turn/list '{\"sessionId\":\""+string(id)+"\"}'", turns)
	return nodes[turn], err
}
