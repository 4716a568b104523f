package chat

import (
	"strings"

	"lashd/cmd/lash/markdown"
	"lashd/cmd/lash/turns"
	"lashd/rpc/protocol"
)

// details shows a whole turn: what was said and called, and the changes of files.
type details struct {
	turn *turns.Turn
	top  int // the first row on the screen
	page int // the rows on the screen

	width int // for which rows were made
	files int // that rows have
	rows  []string
}

// key handles a key press, and reports whether the details stay open.
func (d *details) key(name string) bool {
	switch name {
	case "esc", "q", "enter", "ctrl+c":
		return false
	case "up", "k":
		d.top--
	case "down", "j":
		d.top++
	case "pgup", "b":
		d.top -= d.page
	case "pgdown", "space":
		d.top += d.page
	case "home", "g":
		d.top = 0
	case "end", "G", "shift+g":
		d.top = len(d.rows)
	}
	return true
}

// view returns the rows of the screen.
func (d *details) view(style markdown.Style, height int) (rows []string) {
	if d.width != style.Width || d.files != len(d.turn.Files) {
		d.render(style)
	}
	d.page = max(height-1, 1)
	d.top = max(min(d.top, len(d.rows)-d.page), 0)
	rows = append(rows, d.rows[d.top:min(d.top+d.page, len(d.rows))]...)
	for len(rows) < d.page {
		rows = append(rows, "")
	}
	return append(rows, faint.Render("Up, Down, PgUp and PgDn scroll · Esc goes back"))
}

// render makes the rows.
func (d *details) render(style markdown.Style) {
	d.width, d.files, d.rows = style.Width, len(d.turn.Files), nil
	for i := range d.turn.Items {
		d.add(entry{item: &d.turn.Items[i]}.shown(style))
	}
	if len(d.turn.Files) > 0 {
		d.add(strong.Render("Changes of files"))
	}
	for i := range d.turn.Files {
		f := &d.turn.Files[i]
		if f.Diff == "" {
			d.add(changedFile(f, style.Width))
			continue
		}
		d.add(diff(&protocol.FileChange{Path: f.Path, Diff: f.Diff, Added: f.Added, Removed: f.Removed}, style))
	}
}

// add adds a block.
func (d *details) add(text string) {
	if text == "" {
		return
	}
	for l := range strings.SplitSeq(text, "\n") {
		d.rows = append(d.rows, wrapped(l, d.width)...)
	}
	d.rows = append(d.rows, "")
}
