package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/turns"
	"lashd/rpc/protocol"
)

// sessionRewindCommand implements lash session rewind.
type sessionRewindCommand struct {
	Session      string `arg:"" help:"Session; lash session lists the ids."`
	To           string `required:"" help:"Turn to go back to, which goes too: its number or id; lash session turns lists them." placeholder:"TURN"`
	Both         bool   `help:"Take the conversation and the files back (default)." xor:"what"`
	Conversation bool   `help:"Take only the conversation back; files stay as they are." xor:"what"`
	Files        bool   `help:"Take only the files back; the conversation stays as it is." xor:"what"`
	DryRun       bool   `help:"Show the changes without making them."`
	Force        bool   `help:"Overwrite conflicting files. Files that cannot be restored stay unchanged."`
	console.InJSON
}

// Help is shown by --help.
func (sessionRewindCommand) Help() string {
	return `Takes a session back to before a turn: that turn and all later ones. Files go back only if this session changed them; a fork cannot
restore files that turns of its original changed.

If another program changed a file after the turn, that file is a conflict. On a conflict, nothing changes and the files are listed;
--force overwrites them. Each rewind prints the commands that revert it.

Examples:
  lash session rewind ses_01a1fcf3 --to 4 --dry-run
  lash session rewind ses_01a1fcf3 --to 4 --conversation`
}

// Run goes back to before a turn, and says where the session is then.
func (c sessionRewindCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	id, err := sessionID(ctx, l, c.Session)
	if err != nil {
		return err
	}
	list, err := readTurns(ctx, l, id)
	if err != nil {
		return err
	}
	turn, err := turnNamed(list, id, c.To)
	if err != nil {
		return err
	}
	way, err := c.way(list.Ways(turn))
	if err != nil {
		return err
	}
	p := &way.Params
	p.SessionID, p.DryRun, p.Force = id, c.DryRun, c.Force
	r, err := c.rewind(ctx, l, *p)
	if err != nil || c.JSON {
		return err
	}
	c.report(e, list, turn, way, r)
	return nil
}

// way returns the way that the flags name. Without restorable files, only the conversation goes back.
func (c sessionRewindCommand) way(ways []turns.Way) (turns.Way, error) {
	want := protocol.RewindAlso
	switch {
	case c.Conversation:
		want = ""
	case c.Files:
		want = protocol.RewindOnly
	}
	if i := slices.IndexFunc(ways, func(w turns.Way) bool { return w.Params.Files == want }); i >= 0 {
		return ways[i], nil
	}
	if c.Files || c.Both {
		return turns.Way{}, errors.New("no turn from there on has file changes that this session can restore; use --conversation")
	}
	return ways[0], nil
}

// rewind makes the request and prints the files that it changes, or the conflicts.
func (c sessionRewindCommand) rewind(ctx context.Context, l *daemon.Link, p protocol.SessionRewindParams) (*protocol.SessionRewindResult, error) {
	shows, r := sessionUndoCommand{InJSON: c.InJSON}, &protocol.SessionRewindResult{}
	if err := l.Call(ctx, "session/rewind", p, r); err != nil {
		if _, data := console.WireError(err); data != nil && len(data.Files) > 0 {
			err = errors.Join(shows.print(data.Files), err)
		}
		return nil, err
	}
	if c.JSON {
		return r, console.PrintJSON(r)
	}
	return r, shows.print(r.Files)
}

// report says what happened or would happen, and how to revert it.
func (c sessionRewindCommand) report(e *daemon.Environment, list turns.List, turn *turns.Turn, way turns.Way, r *protocol.SessionRewindResult) {
	id, first, last := way.Params.SessionID, list.Number(turn), len(list)
	if c.DryRun {
		e.Note("would take back %s of session %s: %s", turnsTo(first, last), id, way.Says)
		return
	}
	if way.Talk {
		e.Note("session %s: %s", id, list.Where(turn))
		e.Note("a copy with %s: lash session fork %s --at %s", turnsTo(first, last), id, r.Pinned)
	}
	switch {
	case r.Point != "":
		e.Note("restored %s; to revert this: lash session undo %s %s", fileCount(r.Files), id, r.Point)
	case way.Params.Files != "":
		e.Note("no file changes: the files already have the earlier contents")
	}
}

// turnsTo names turns by their numbers.
func turnsTo(first, last int) string {
	if first == last {
		return fmt.Sprintf("turn %d", first)
	}
	return fmt.Sprintf("turns %d to %d", first, last)
}
