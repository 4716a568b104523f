package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// sessionDeleteCommand implements lash session delete. It is the only command
// that destroys history, so it asks on a terminal.
type sessionDeleteCommand struct {
	Sessions []string `arg:"" help:"Session ids, or unique prefixes of ids; lash session lists the ids."`
	Yes      bool     `short:"y" help:"Delete without asking."`
}

// Help is shown by --help.
func (sessionDeleteCommand) Help() string {
	return `Permanently deletes sessions with their history, tasks and triggers. Running turns stop. Workspace files stay unchanged,
but their changes can no longer be undone. On a terminal, lashd asks first.

Example: lash session delete ses_01a1fcf3708472b29ab5e2b2aa8e328f`
}

// Run looks up all sessions before it deletes the first one, so that a misspelled
// id deletes nothing. Without a terminal it does not ask.
func (c sessionDeleteCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	var doomed []protocol.Session
	for _, text := range c.Sessions {
		s, err := session(ctx, l, text)
		if err != nil {
			return err
		}
		doomed = append(doomed, s)
	}
	if !c.Yes && console.Terminal(os.Stdin) && console.Terminal(os.Stderr) && !confirmed(doomed) {
		return console.Exit(console.ExitCancelled, errors.New("nothing was deleted"))
	}
	progress := console.Begin("deleting", "Ctrl-C stops after the current session")
	defer progress.End()
	for i, s := range doomed {
		progress.Far("session %d of %d", i+1, len(doomed))
		if err := l.Call(ctx, "session/delete", protocol.SessionMutationParams{SessionID: s.ID}, nil); err != nil {
			return fmt.Errorf("%s: %w", s.ID, err)
		}
	}
	progress.End()
	for _, s := range doomed {
		e.Note("deleted %s", shortID(s.ID))
	}
	return nil
}

// session reads the session that text names: an id or a unique prefix. Errors
// begin with the id.
func session(ctx context.Context, l *daemon.Link, text string) (protocol.Session, error) {
	id, err := sessionID(ctx, l, text)
	if err != nil {
		return protocol.Session{}, err
	}
	var r protocol.SessionReadResult
	err = l.Call(ctx, "session/read", protocol.SessionReadParams{SessionID: id, Limit: 1}, &r)
	if err != nil {
		return r.Session, fmt.Errorf("%s: %w", id, err)
	}
	return r.Session, nil
}

// confirmed lists the sessions on the terminal and asks whether to delete them.
// Only y or yes is a yes. The end of stdin is a no.
func confirmed(doomed []protocol.Session) bool {
	for _, s := range doomed {
		fmt.Fprintf(os.Stderr, "%s  %s, %s  %s\n", shortID(s.ID), plural(int(s.TurnIndex), "turn", "turns"), stateOf(s.State), console.OneLine(s.Title, 60))
	}
	fmt.Fprint(os.Stderr, "Delete permanently? [y/N] ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // at the end of input, line is empty
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line)))
}
