package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/turns"
	"lashd/rpc/protocol"
)

// ofFiles are the arguments of commands about file changes: a session, and a turn
// or a file point of it. Both are optional, so a single argument may be either.
type ofFiles struct {
	Session string `arg:"" optional:"" help:"Session; lash session lists the ids (default the session of the turn, or the one last used in this directory)."`
	Turn    string `arg:"" optional:"" help:"Turn or file point; lash session points lists the ids. You can omit the session."`
}

// alone returns o with a single argument in the right field: the id of a turn or a
// file point may be given without a session. It recognizes them by their prefix.
func (o ofFiles) alone() ofFiles {
	if o.Turn == "" && (strings.HasPrefix(o.Session, "trn_") || strings.HasPrefix(o.Session, "fpt_")) {
		o.Session, o.Turn = "", o.Session
	}
	return o
}

// point reports whether Turn is the id of a file point.
func (o ofFiles) point() bool { return strings.HasPrefix(o.Turn, "fpt_") }

// session returns the named session, the session of the turn, or the session
// that a person used last in the current directory. No session in the directory is a usage error.
// A shortened turn id does not name its session; then the session that
// was used last is taken.
func (o ofFiles) session(ctx context.Context, l *daemon.Link) (protocol.SessionID, error) {
	if o.Session != "" {
		return sessionID(ctx, l, o.Session)
	}
	if len(o.Turn) >= idLength && !o.point() {
		var r protocol.TurnReport
		err := l.Call(ctx, "turn/read", protocol.TurnParams{TurnID: protocol.TurnID(o.Turn)}, &r)
		return r.SessionID, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	id, err := lastSession(caller(ctx, l), cwd)
	if err == nil && id == "" {
		err = console.Exit(console.ExitUsage, errors.New("this directory has no session; lash session lists all sessions"))
	}
	return id, err
}

// sessionPointsCommand implements lash session points.
type sessionPointsCommand struct {
	Session string `arg:"" optional:"" help:"Session; lash session lists the ids (default the one last used in this directory)."`
	console.InJSON
}

// Help is shown by --help.
func (sessionPointsCommand) Help() string {
	return `POINT is a file point: the stored file changes of one turn or one undo, which lash session undo takes back. STATE is "undone" after an undo reverted it.

Example: lash session points`
}

// Run prints the file points, newest first.
// It starts the daemon if necessary. Without points it prints a note, not an empty
// table.
func (c sessionPointsCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	id, err := ofFiles{Session: c.Session}.session(ctx, l)
	if err != nil {
		return err
	}
	points, err := pointsOf(ctx, l, id)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(points)
	}
	if len(points) == 0 {
		e.Note("no turn of session %s changed files", shortID(id))
		return nil
	}
	rows := [][]string{{"POINT", "TURN", "AT", "STATE", "FILES", "NOTE"}}
	for _, p := range slices.Backward(points) {
		rows = append(rows, []string{string(p.ID), pointTurn(p), moment(p.AtMs), pointState(p), fmt.Sprint(p.Files), pointNote(p)})
	}
	return table(rows, "TURN", "NOTE", "AT")
}

// pointTurn returns the turn of a file point, or "undo" for the point of an undo.
func pointTurn(p protocol.FilePoint) string {
	if p.Kind == protocol.PointRewind {
		return "undo"
	}
	return string(p.TurnID)
}

// pointState returns the STATE column of a file point.
func pointState(p protocol.FilePoint) string {
	if p.Undone {
		return "undone"
	}
	return string(p.State)
}

// pointNote says why a file point cannot be undone completely, or returns "".
// Files without a stored copy were too large or over the budget.
func pointNote(p protocol.FilePoint) string {
	switch {
	case p.Unrestorable != "":
		return "cannot be undone: " + console.OneLine(p.Unrestorable, 100)
	case p.Unkept > 0:
		return fmt.Sprintf("%d files without a stored copy", p.Unkept)
	}
	return ""
}

// pointsOf returns the file points of a session, oldest first.
func pointsOf(ctx context.Context, l *daemon.Link, id protocol.SessionID) ([]protocol.FilePoint, error) {
	var r protocol.SessionPointsResult
	err := l.Call(ctx, "session/points", protocol.SessionParams{SessionID: id}, &r)
	return r.Data, err
}

// sessionUndoCommand implements lash session undo. The daemon does the undo; this
// file finds the point and shows the result.
type sessionUndoCommand struct {
	ofFiles
	History bool `help:"Also remove the undone turns from the model's context."`
	DryRun  bool `help:"Show the changes without making them."`
	Force   bool `help:"Overwrite conflicting files. Files that cannot be restored stay unchanged."`
	console.InJSON
}

// Help is shown by --help.
func (sessionUndoCommand) Help() string {
	return `By default, undoes the newest turn with file changes that is not undone yet. Undoing an older turn also reverts the
changes of later turns.

If another program changed a file after the turn, that file is a conflict. On a conflict, undo changes nothing and lists the files;
--force overwrites them. Each undo prints the command that reverts it.

Exit codes: 0 success, 1 failure or conflict.

Example: lash session undo --dry-run`
}

// Run undoes a turn or a file point. On a conflict it prints the conflicting files
// and fails; nothing has changed then. The undo itself becomes a file point, which
// Run names so that it can be reverted.
func (c sessionUndoCommand) Run(ctx context.Context, e *daemon.Environment) error {
	c.ofFiles = c.alone()
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := c.params(ctx, l)
	if err != nil {
		return err
	}
	var r protocol.SessionRewindResult
	progress := console.Begin("comparing and restoring files", "Ctrl-C stops waiting; lashd finishes the undo")
	defer progress.End()
	err = l.Call(ctx, "session/rewind", p, &r)
	progress.End()
	if err != nil {
		if _, data := console.WireError(err); data != nil && len(data.Files) > 0 {
			if failed := c.print(data.Files); failed != nil {
				return failed
			}
		}
		return err
	}
	if c.JSON {
		return console.PrintJSON(r)
	}
	if err := c.print(r.Files); err != nil {
		return err
	}
	switch {
	case len(r.Files) == 0:
		e.Note("nothing to change: the files already have the earlier contents")
	case r.Point != "":
		before, err := turns.Undone(caller(ctx, l), p.SessionID, p.ToTurn, p.ToPoint)
		if err != nil {
			return err
		}
		e.Note("session %s: %s restored to %s", shortID(p.SessionID), fileCount(r.Files), before)
		e.Note("to revert this undo: lash session undo %s %s", shortID(p.SessionID), shortID(r.Point))
	}
	return nil
}

// fileCount counts files in words, without directories.
func fileCount(files []protocol.FileRewind) string {
	n := 0
	for _, f := range files {
		if f.Kind != protocol.FileDirectory {
			n++
		}
	}
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// params converts the arguments to a request. Without a turn, it asks the daemon
// for the newest one that can be undone.
// Shortened ids are completed first.
func (c sessionUndoCommand) params(ctx context.Context, l *daemon.Link) (p protocol.SessionRewindParams, err error) {
	p = protocol.SessionRewindParams{Files: protocol.RewindOnly, DryRun: c.DryRun, Force: c.Force}
	if c.History {
		p.Files = protocol.RewindAlso
	}
	if p.SessionID, err = c.session(ctx, l); err != nil {
		return p, err
	}
	if c.Turn, err = turnID(ctx, l, p.SessionID, c.Turn); err != nil {
		return p, err
	}
	switch {
	case c.point():
		p.ToPoint = protocol.PointID(c.Turn)
	case c.Turn == "":
		p.ToTurn, err = newestTurn(ctx, l, p.SessionID)
	default:
		p.ToTurn = protocol.TurnID(c.Turn)
	}
	return p, err
}

// newestTurn returns the newest turn that changed files and is not undone. An
// error says that none is left.
// Undos are file points too, but are skipped: repeated undo commands go back turn by
// turn.
func newestTurn(ctx context.Context, l *daemon.Link, id protocol.SessionID) (protocol.TurnID, error) {
	points, err := pointsOf(ctx, l, id)
	if err != nil {
		return "", err
	}
	for _, p := range slices.Backward(points) {
		if p.Kind == protocol.PointTurn && !p.Undone {
			return p.TurnID, nil
		}
	}
	return "", fmt.Errorf("nothing left to undo in session %s", shortID(id))
}

// print lists the files that an undo changed, would change with --dry-run, or
// could not change because of conflicts.
// An empty list prints nothing.
func (c sessionUndoCommand) print(files []protocol.FileRewind) error {
	if c.JSON {
		return console.PrintJSON(files)
	}
	if len(files) == 0 {
		return nil
	}
	rows := [][]string{{"EFFECT", "ADDED", "REMOVED", "PATH", "NOTE"}}
	for _, f := range files {
		rows = append(rows, []string{string(f.Effect), fmt.Sprint(f.Added), fmt.Sprint(f.Removed), console.OneLine(f.Path, 200), rewindNote(f)})
	}
	return table(rows, "REMOVED", "ADDED")
}

// rewindNote returns the NOTE column of a restored file: a failure or a conflict.
func rewindNote(f protocol.FileRewind) string {
	switch {
	case f.Problem != "":
		return "failed: " + console.OneLine(f.Problem, 100)
	case f.Unkept != "":
		return "unchanged, no stored copy: " + string(f.Unkept)
	case f.Conflict != "":
		return "conflict: " + string(f.Conflict)
	case f.Kind != protocol.FileRegular:
		return string(f.Kind)
	}
	return ""
}
