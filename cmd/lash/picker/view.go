package picker

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/internal/termtext"
)

// The styles use the palette of the terminal.
var (
	faint  = lipgloss.NewStyle().Faint(true)
	strong = lipgloss.NewStyle().Bold(true)
	marked = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
)

// PreviewFrom is the number of columns from which a list has a preview beside it.
const PreviewFrom = 80

// Preview returns the lines of a preview, at most height of them and none wider than width.
type Preview func(width, height int) []string

// View returns the rows of the screen, and the column and row of the cursor.
func (l *List) View(width, height int, preview Preview) (rows []string, x, y int) {
	if l.Typing || !l.filter.Empty() {
		filter, at := l.filterLine(width)
		rows, x, y = append(rows, filter), at, 1
	}
	body := max(height-len(rows)-2, 2)
	left := width
	if preview != nil && width >= PreviewFrom {
		left = width * 9 / 20
	}
	entries := l.lines(left, body)
	if left < width {
		entries = beside(entries, preview(width-left-3, body), left, body)
	}
	for len(entries) < body {
		entries = append(entries, "")
	}
	rows = append(rows, entries...)
	rows = append(append([]string{l.head(width)}, rows...), faint.Render(ansi.Truncate(l.Keys, width, "…")))
	rows = rows[:min(len(rows), height)]
	if y == 0 {
		return rows, 0, 1 + 2*(l.at-l.top)
	}
	return rows, x, y
}

// head returns the first row: the name of the list, and the place of the mark in it.
func (l *List) head(width int) string {
	place := ""
	if n := len(l.shown); n > 0 {
		place = fmt.Sprintf("%d of %d", l.at+1, n)
	}
	name := ansi.Truncate(l.Head, max(width-len(place)-1, 1), "…")
	return strong.Render(name) + faint.Render(strings.Repeat(" ", max(width-ansi.StringWidth(name)-len(place), 1))+place)
}

// filterLine returns the row of the filter, and the column of the cursor.
func (l *List) filterLine(width int) (string, int) {
	lines, x, _ := l.filter.View(max(width-2, 10), 1)
	line := marked.Render("› ") + lines[0]
	if l.filter.Empty() {
		line += faint.Render(l.Asks)
	}
	return line, x + 2
}

// lines returns the entries around the mark, each on two lines.
func (l *List) lines(width, height int) (lines []string) {
	if len(l.shown) == 0 {
		return []string{faint.Render(ansi.Truncate("  "+l.Empty, width, "…"))}
	}
	l.page = max(height/2, 1)
	l.top = max(min(l.top, l.at, len(l.shown)-l.page), l.at-l.page+1, 0)
	for i := l.top; i < min(l.top+l.page, len(l.shown)); i++ {
		e := &l.entries[l.shown[i]]
		title := ansi.Truncate(termtext.OneLine(e.Title, 300), width-2, "…")
		if i == l.at {
			title = marked.Render("▸ " + title)
		} else {
			title = "  " + title
		}
		lines = append(lines, title, "  "+ansi.Truncate(e.Detail, width-2, "…"))
	}
	return lines
}

// beside puts lines on the left and right of a rule.
func beside(left, right []string, width, height int) (rows []string) {
	for i := range height {
		var l, r string
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		rows = append(rows, l+strings.Repeat(" ", max(width-ansi.StringWidth(l), 0))+faint.Render(" │ ")+r)
	}
	return rows
}
