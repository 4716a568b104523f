package cli

import (
	"context"
	"fmt"
	"io"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

// sessionDiffCommand implements lash session diff. The output without --stat is a
// unified diff.
type sessionDiffCommand struct {
	ofFiles
	Stat bool `help:"Show line counts only."`
	JSON bool `help:"Print JSON."`
}

// Help is shown by --help.
func (sessionDiffCommand) Help() string {
	return `Shows the changes as the session made them. Later changes to the files do not matter.

Example: lash session diff --stat`
}

// Run reads the stored changes of a session, a turn or a file point, page by page,
// and prints them.
// It starts the daemon if necessary. The pages hold up to 500 files each, and all of
// them are in memory before the first is printed.
func (c sessionDiffCommand) Run(ctx context.Context, e *daemon.Environment) error {
	c.ofFiles = c.alone()
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	id, err := c.session(ctx, l)
	if err != nil {
		return err
	}
	if c.Turn, err = turnID(ctx, l, id, c.Turn); err != nil {
		return err
	}
	p := protocol.SessionDiffParams{SessionID: id, Limit: 500}
	if c.point() {
		p.PointID = protocol.PointID(c.Turn)
	} else {
		p.TurnID = protocol.TurnID(c.Turn)
	}
	all := []protocol.FileDiff{}
	for {
		var r protocol.SessionDiffResult
		if err := l.Call(ctx, "session/diff", p, &r); err != nil {
			return err
		}
		if all, p.Cursor = append(all, r.Data...), r.NextCursor; p.Cursor == "" {
			return c.print(e, all)
		}
	}
}

// print prints the changes as a diff, as line counts or as JSON. A change without
// a complete diff has a comment line that says why.
// On a terminal it has colors, and control characters of the files are escaped.
func (c sessionDiffCommand) print(e *daemon.Environment, all []protocol.FileDiff) error {
	switch {
	case c.JSON:
		return console.PrintJSON(all)
	case len(all) == 0:
		e.Note("no file changes")
		return nil
	case c.Stat:
		rows := [][]string{{"EFFECT", "ADDED", "REMOVED", "PATH", "NOTE"}}
		for _, d := range all {
			rows = append(rows, []string{string(d.Effect), fmt.Sprint(d.Added), fmt.Sprint(d.Removed), console.OneLine(d.Path, 200), diffNote(d)})
		}
		return table(rows, "REMOVED", "ADDED")
	}
	for _, d := range all {
		text := d.Diff
		if note := diffNote(d); text == "" || note != "" {
			text = fmt.Sprintf("# %s: %s %s\n", console.OneLine(d.Path, 200), d.Effect, note) + text
		}
		if style, ok := outputStyle(); ok {
			text = joined(markdown.Diff(text, style))
		}
		if _, err := io.WriteString(console.Stdout, text); err != nil {
			return err
		}
	}
	return nil
}

// diffNote describes the parts of a change that its diff does not show: contents
// without a diff, and a changed mode.
func diffNote(d protocol.FileDiff) string {
	about, mode := contentNote(d), ""
	if d.Before != nil && d.After != nil && d.Before.Mode != d.After.Mode {
		mode = fmt.Sprintf("mode %o to %o", d.Before.Mode, d.After.Mode)
	}
	if about != "" && mode != "" {
		return about + ", " + mode
	}
	return about + mode
}

// contentNote says why a change has no complete diff, or returns "" if it has one.
func contentNote(d protocol.FileDiff) string {
	switch {
	case d.Unkept != "":
		return "no stored copy: " + string(d.Unkept)
	case d.Binary:
		return "binary"
	case d.Cut:
		return "diff too long"
	case d.Kind != protocol.FileRegular:
		return string(d.Kind)
	}
	return ""
}
