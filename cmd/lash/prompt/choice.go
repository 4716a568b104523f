package prompt

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/internal/termtext"
)

// Styles of a menu. The sign before the marked choice shows it also without colors.
var (
	faint  = lipgloss.NewStyle().Faint(true)
	marked = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
)

// line returns a choice on a line of at most width columns, with its text in a column of
// its own if it has an explanation.
func (c Choice) line(width, column int, mark bool) string {
	says := termtext.OneLine(c.Says, 200)
	if says == "" || width < column+12 {
		column, says = width-2, ""
	}
	text := c.cut(column)
	if says != "" {
		text += strings.Repeat(" ", column-columnsOf(text)) + "  "
		says = ansi.Truncate(says, width-column-4, "…")
	}
	if mark {
		return marked.Render("▸ "+text) + says
	}
	return "  " + text + faint.Render(says)
}

// cut returns the text of a choice in at most width columns.
func (c Choice) cut(width int) string {
	text := termtext.Printable(c.Text)
	if over := columnsOf(text) - width; over > 0 && c.Path {
		return ansi.TruncateLeft(text, over+1, "…")
	}
	return ansi.Truncate(text, width, "…")
}

// columnsOf returns the columns of a text on the screen.
func columnsOf(text string) int { return ansi.StringWidth(text) }
