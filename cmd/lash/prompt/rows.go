package prompt

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// rows is a text as it is wrapped on the screen, in rows of width columns.
type rows struct {
	text  text
	width int
}

// last returns the last place of a row. The place after the last cell of a wrapped
// row is shown in the next one.
func (r rows) last(line, row int) int {
	l := r.text[line]
	cells, start := l.row(row, r.width)
	if row+1 < len(l.wrap(r.width)) {
		return start + len(cells) - 1
	}
	return start + len(cells)
}

// start returns the beginning of the row of p or, if p is there, of its line.
func (r rows) start(p pos) pos {
	l := r.text[p.line]
	_, start := l.row(l.rowOf(p.cell, r.width), r.width)
	if p.cell == start {
		return r.text.lineStart(p)
	}
	return pos{p.line, start}
}

// end returns the last place of the row of p or, if p is there, the end of its
// line.
func (r rows) end(p pos) pos {
	end := r.last(p.line, r.text[p.line].rowOf(p.cell, r.width))
	if p.cell == end {
		return r.text.lineEnd(p)
	}
	return pos{p.line, end}
}

// above returns the place in the previous row that is as near to column goal as its
// cells allow, and whether there is such a row.
func (r rows) above(p pos, goal int) (pos, bool) {
	n := r.text[p.line].rowOf(p.cell, r.width)
	switch {
	case n > 0:
		return r.at(p.line, n-1, goal), true
	case p.line > 0:
		return r.at(p.line-1, len(r.text[p.line-1].wrap(r.width))-1, goal), true
	}
	return p, false
}

// below returns the place in the next row that is as near to column goal as its
// cells allow, and whether there is such a row.
func (r rows) below(p pos, goal int) (pos, bool) {
	l := r.text[p.line]
	n := l.rowOf(p.cell, r.width)
	switch {
	case n+1 < len(l.wrap(r.width)):
		return r.at(p.line, n+1, goal), true
	case p.line+1 < len(r.text):
		return r.at(p.line+1, 0, goal), true
	}
	return p, false
}

// at returns the place in a row of a line that is as near to column goal as its
// cells allow.
func (r rows) at(line, row, goal int) pos {
	cells, start := r.text[line].row(row, r.width)
	at, used := 0, 0
	for at < r.last(line, row)-start && used+cells[at].width <= goal {
		used += cells[at].width
		at++
	}
	return pos{line, start + at}
}

// column returns the column of p in its row, and the row in its line.
func (r rows) column(p pos) (column, row int) {
	l := r.text[p.line]
	row = l.rowOf(p.cell, r.width)
	_, start := l.row(row, r.width)
	return columns(l.cells[start:p.cell]), row
}

// around returns the line and the row in it that is shown first if at most height
// rows are shown and p is in the last of them, and how many rows are above that of p.
func (r rows) around(p pos, height int) (line, row, above int) {
	line, row = p.line, r.text[p.line].rowOf(p.cell, r.width)
	for ; above < height-1; above++ {
		switch {
		case row > 0:
			row--
		case line > 0:
			line--
			row = len(r.text[line].wrap(r.width)) - 1
		default:
			return line, row, above
		}
	}
	return line, row, above
}

// shown returns at most height rows from a row of a line on, each at most width
// columns wide.
func (r rows) shown(line, row, width, height int) (all []string) {
	for ; line < len(r.text) && len(all) < height; line, row = line+1, 0 {
		for ; row < len(r.text[line].wrap(r.width)) && len(all) < height; row++ {
			cells, _ := r.text[line].row(row, r.width)
			all = append(all, show(cells, width))
		}
	}
	return all
}

// show returns a row as it looks on the screen.
func show(cells []cell, width int) string {
	var b strings.Builder
	for _, c := range cells {
		b.WriteString(c.shown())
	}
	if columns(cells) > width { // a single cell is wider than the screen
		return ansi.Truncate(b.String(), width, "…")
	}
	return b.String()
}
