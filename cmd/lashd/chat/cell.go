package chat

import (
	"cmp"
	"fmt"
	"strings"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// codeLines is the number of lines of code to show of a cell.
const codeLines = 16

// codeCell renders a code cell that has ended: the code, with a mark at the line of
// the error, then the result, and the globals that the code changed on one line.
func codeCell(item *protocol.Item, width int) string {
	mark, at := good.Render("✓ "), 0
	if item.Status == protocol.ItemFailed {
		mark = bad.Render("✗ ")
	}
	r := item.Cell
	if r != nil && r.Position != nil {
		at = r.Position.Line
	}
	out := append([]string{mark + codeTitle(item)}, codeOf(item.Text, at, width)...)
	if r == nil {
		return strings.Join(append(out, fit(bad.Render("  The code is incomplete and was not run."), width)), "\n")
	}
	shown := *r
	shown.Error = ""
	if text := shown.Text(); text != "" {
		out = append(out, clipped(text, width))
	}
	if text := r.ErrorText(); text != "" {
		out = append(out, fit(bad.Render("  "+termtext.OneLine(text, 400)), width))
	}
	if len(r.Changed) > 0 {
		out = append(out, faint.Render("  "+termtext.OneLine("changed: "+strings.Join(r.Changed, ", "), max(width-2, 20))))
	}
	return strings.Join(out, "\n")
}

// codeTitle renders the language of a cell.
func codeTitle(item *protocol.Item) string {
	return strong.Render(termtext.OneLine(cmp.Or(item.Language, "code"), 60))
}

// codeOf renders the lines of code, at most codeLines of them: the first ones, or
// those up to the line at, which gets a mark. Lines count from 1, and 0 marks none.
func codeOf(source string, at, width int) (out []string) {
	if source == "" {
		return nil
	}
	lines := strings.Split(termtext.Printable(source), "\n")
	from := max(0, min(at, len(lines))-codeLines)
	if from > 0 {
		out = append(out, faint.Render(fmt.Sprintf("  … %d lines before", from)))
	}
	to := min(from+codeLines, len(lines))
	for i, l := range lines[from:to] {
		if from+i+1 == at {
			out = append(out, bad.Render("→ "+cut(l, width-2)))
			continue
		}
		out = append(out, "  "+cut(l, width-2))
	}
	if to < len(lines) {
		out = append(out, faint.Render(fmt.Sprintf("  … %d more lines", len(lines)-to)))
	}
	return out
}

// growingCell renders a cell that has not ended: the newest lines of its code.
func growingCell(item *protocol.Item, width int) string {
	out := []string{asking.Render("▸ ") + codeTitle(item)}
	lines := strings.Split(termtext.Printable(item.Text), "\n")
	for _, l := range lines[max(0, len(lines)-codeLines):] {
		out = append(out, "  "+cut(l, width-2))
	}
	return strings.Join(out, "\n")
}
