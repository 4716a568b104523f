package chat

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Limits of what is shown of a cell.
const (
	codeLines = 16 // lines of code
	callLines = 8  // calls
)

// codeCell renders a code cell that has ended: its language and duration, the code with a mark at the line of
// the error, its calls, the result, and on one line the globals that the code changed.
func codeCell(item *protocol.Item, style markdown.Style) string {
	width := style.Width
	mark, at := good.Render("✓ "), 0
	if item.Status == protocol.ItemFailed {
		mark = bad.Render("✗ ")
	}
	r := item.Cell
	if r == nil {
		out := append([]string{mark + codeTitle(item)}, codeOf(item, at, style)...)
		return strings.Join(append(out, fit(bad.Render("  The code is incomplete and was not run."), width)), "\n")
	}
	if r.Position != nil {
		at = r.Position.Line
	}
	out := append([]string{mark + codeTitle(item) + faint.Render(" "+lasted(r.DurationMs))}, codeOf(item, at, style)...)
	out = append(out, cellCalls(r, width)...)
	shown := *r
	shown.Error = ""
	if text := shown.Text(); text != "" {
		out = append(out, clipped(text, width))
	}
	shown.Error = withoutSource(r)
	if text := shown.ErrorText(); text != "" {
		out = append(out, fit(bad.Render("  "+termtext.OneLine(text, 400)), width))
	}
	if len(r.Changed) > 0 {
		out = append(out, faint.Render("  "+termtext.OneLine("changed: "+strings.Join(r.Changed, ", "), max(width-2, 20))))
	}
	return strings.Join(out, "\n")
}

// withoutSource returns the error without the line of code that an executor may quote at its end for the model: the code
// above has the line, with a mark.
func withoutSource(r *protocol.CodeResult) string {
	at := strings.LastIndexByte(r.Error, '\n')
	if r.Position == nil || at < 0 || !strings.HasPrefix(strings.TrimSpace(r.Error[at:]), fmt.Sprintf("%d | ", r.Position.Line)) {
		return r.Error
	}
	return r.Error[:at]
}

// codeTitle renders the language of a cell.
func codeTitle(item *protocol.Item) string {
	return strong.Render(termtext.OneLine(cmp.Or(item.Language, "code"), 60))
}

// codeOf renders the code of a cell, at most codeLines lines of it: the first ones, or
// those up to the line at, which gets a mark. Lines count from 1, and 0 marks none.
func codeOf(item *protocol.Item, at int, style markdown.Style) (out []string) {
	if item.Text == "" {
		return nil
	}
	lines := markdown.Code(item.Language, item.Text, style)
	from := max(0, min(at, len(lines))-codeLines)
	if from > 0 {
		out = append(out, faint.Render(fmt.Sprintf("  … %d lines before", from)))
	}
	to := min(from+codeLines, len(lines))
	for i, l := range lines[from:to] {
		if from+i+1 == at {
			out = append(out, bad.Render("→ ")+codeLine(l, style.Width-2))
			continue
		}
		out = append(out, "  "+codeLine(l, style.Width-2))
	}
	if to < len(lines) {
		out = append(out, faint.Render(fmt.Sprintf("  … %d more lines", len(lines)-to)))
	}
	return out
}

// codeLine cuts a styled line of code to a width of at least 20 columns.
func codeLine(line string, width int) string { return ansi.Truncate(line, max(width, 20), "…") }

// cellCalls renders the calls of a cell that has ended, one a line: the first callLines of them, and the number of the others.
func cellCalls(r *protocol.CodeResult, width int) (out []string) {
	calls := r.Calls[:min(len(r.Calls), callLines)]
	for i := range calls {
		out = append(out, cellCall(&calls[i], width))
	}
	if rest := len(r.Calls) - len(calls) + r.MoreCalls; rest > 0 {
		out = append(out, faint.Render("  … "+counted(rest, "more call")))
	}
	return out
}

// growingCalls renders the newest calls of a cell that runs, after the number of the others.
func growingCalls(r *protocol.CodeResult, width int) (out []string) {
	calls := r.Calls[max(0, len(r.Calls)-callLines):]
	if before := len(r.Calls) - len(calls) + r.MoreCalls; before > 0 {
		out = append(out, faint.Render("  … "+counted(before, "call")+" before"))
	}
	for i := range calls {
		out = append(out, cellCall(&calls[i], width))
	}
	return out
}

// cellCall renders a call of a cell: its state, what it does, and how long it took or why it failed.
func cellCall(c *protocol.CellCall, width int) string {
	mark, took := good.Render("  ✓ "), " · "+lasted(c.DurationMs)
	switch c.Status {
	case protocol.ItemInProgress:
		mark, took = asking.Render("  ▸ "), ""
	case protocol.ItemFailed:
		mark = bad.Render("  ✗ ")
		took += " · " + termtext.OneLine(c.Summary, max(20, width/2))
	case protocol.ItemUnknown:
		mark = asking.Render("  ? ")
		took += " · outcome unknown"
	}
	does, what := callWords(protocol.TitleOf(protocol.ToolCall{Name: c.Tool, Args: c.Args}), c.Status, c.Tool, c.Args)
	if does = termtext.OneLine(does, 60); what != "" {
		what = " " + termtext.OneLine(what, max(20, width-len(does)-len([]rune(took))-5))
	}
	return mark + does + faint.Render(what+took)
}

// growingCell renders a cell that has not ended: the newest lines of its code, and its newest calls. Only these lines are
// highlighted, because the chat draws growing code many times a second.
func growingCell(item *protocol.Item, style markdown.Style) string {
	out := []string{asking.Render("▸ ") + codeTitle(item)}
	lines := strings.Split(item.Text, "\n")
	newest := strings.Join(lines[max(0, len(lines)-codeLines):], "\n")
	for _, l := range markdown.Code(item.Language, newest, style) {
		out = append(out, "  "+codeLine(l, style.Width-2))
	}
	if item.Cell != nil {
		out = append(out, growingCalls(item.Cell, style.Width)...)
	}
	return strings.Join(out, "\n")
}
