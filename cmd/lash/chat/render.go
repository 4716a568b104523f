package chat

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// The styles use the palette of the terminal, so that they suit its background.
var (
	faint  = lipgloss.NewStyle().Faint(true)
	strong = lipgloss.NewStyle().Bold(true)
	mine   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	good   = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	asking = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
)

// shown renders an entry for a terminal, without a newline at
// the end. It returns "" for an entry without visible text. All text passes
// through termtext, because models and tools may write control characters. Lines of
// text are not wrapped: the terminal does that, and copying them gives no newlines.
func (e entry) shown(style markdown.Style) string {
	width := style.Width
	if e.item == nil {
		return noteLines(e.note, width)
	}
	if title, n, ok := e.item.AddedText(); ok && e.item.Origin.Plugin == protocol.ServersID {
		return mine.Render("  " + attachedText(title, n))
	} else if ok {
		return noteLines(fmt.Sprintf("%s (%s)", title, lineCount(n)), width)
	}
	switch e.item.Kind {
	case protocol.ItemUserMessage:
		return each(mine, "› "+hang(termtext.Printable(e.item.Text)))
	case protocol.ItemAgentMessage:
		return strings.Join(markdown.Render(e.item.Text, style), "\n")
	case protocol.ItemReasoning:
		return faint.Render("  thought: " + termtext.OneLine(e.item.Text, max(width-12, 20)))
	case protocol.ItemToolCall:
		return toolCall(e.item, style)
	case protocol.ItemCodeCell:
		return codeCell(e.item, style)
	}
	what := string(e.item.Kind)
	if e.item.Origin != nil && e.item.Origin.Cause != nil {
		what = "Woken"
	}
	return faint.Render(fmt.Sprintf("· %s: %s", what, termtext.OneLine(e.item.Text, 400)))
}

// attachedText returns the label of what an MCP server added to a message, such as "[resource doc://guide of the MCP server docs, 1 line]".
func attachedText(title string, lines int) string {
	label := termtext.OneLine(strings.TrimPrefix(title, "The "), 200)
	if lines > 0 { // others are images and documents, which have labels of their own
		label += ", " + lineCount(lines)
	}
	return "[" + label + "]"
}

// lineCount returns a number of lines with its noun.
func lineCount(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

// noteLines renders a note of the chat, broken between words. Without a width it is one line.
func noteLines(note string, width int) string {
	text := "· " + termtext.OneLine(note, 400)
	if width <= 0 {
		return faint.Render(text)
	}
	return each(faint, hang(ansi.Wordwrap(text, max(width-2, 20), "")))
}

// each styles every line of a text by itself. Styling all lines at once would pad
// them to the longest line.
func each(style lipgloss.Style, text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = style.Render(l)
	}
	return strings.Join(lines, "\n")
}

// hang indents all lines of a text but the first.
func hang(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// fit wraps a text to a width of at least 20 columns. Styles continue across the
// breaks.
func fit(text string, width int) string { return lipgloss.Wrap(text, max(width, 20), " ") }

// outputLines is the number of lines to show of the output of a cell; diffs may
// have three times as many.
const outputLines = 8

// lasted formats a duration in milliseconds.
func lasted(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// clipped renders the first outputLines lines of a text, and the number of lines
// left out. One line more than the limit is shown, since the note would take as
// much room.
func clipped(text string, width int) string {
	lines := strings.Split(strings.TrimSpace(termtext.Printable(text)), "\n")
	more := len(lines) - outputLines
	if more > 1 {
		lines = lines[:outputLines]
	}
	for i, l := range lines {
		lines[i] = faint.Render("  " + cut(l, width-2))
	}
	if more > 1 {
		lines = append(lines, faint.Render(fmt.Sprintf("  … %d more lines", more)))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " ")
}

// cut shortens a line to a width of at least 20 characters.
func cut(line string, width int) string {
	line = strings.ReplaceAll(line, "\t", "    ")
	if r := []rune(line); len(r) > max(width, 20) {
		return string(r[:max(width, 20)-1]) + "…"
	}
	return line
}

// diff renders the change of a file: a line with the path and the counts, then at
// most 3*outputLines lines of the diff without its file header.
func diff(c *protocol.FileChange, style markdown.Style) string {
	width := max(style.Width-2, 20)
	out := []string{fmt.Sprintf("  %s %s %s", termtext.OneLine(c.Path, max(style.Width-20, 20)), good.Render(fmt.Sprint("+", c.Added)), bad.Render(fmt.Sprint("-", c.Removed)))}
	lines := markdown.Diff(withoutHeader(c.Diff), style)
	for i, l := range lines {
		if i == 3*outputLines {
			out = append(out, faint.Render(fmt.Sprintf("  … %d more lines", len(lines)-i)))
			break
		}
		out = append(out, "  "+ansi.Truncate(l, width, "…"))
	}
	return strings.Join(out, "\n")
}

// withoutHeader returns a diff of one file without the two lines that name the file.
func withoutHeader(diff string) string {
	for _, mark := range []string{"--- ", "+++ "} {
		if line, rest, ok := strings.Cut(diff, "\n"); ok && strings.HasPrefix(line, mark) {
			diff = rest
		}
	}
	return diff
}

// retryNote describes a retried model call.
func retryNote(r *protocol.RetryStatus) string {
	if r == nil {
		return "retrying the model call"
	}
	return termtext.OneLine(r.String(), 400)
}
