package chat

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

// cardDiffLines is the number of lines of a diff below the card of its call.
const cardDiffLines = 12

// changeLines renders the beginning of what a finished call changed in a file, with line numbers, for
// the scrollback. The transcript has the rest.
func changeLines(item *protocol.Item, style markdown.Style) (lines []string) {
	if item.Output == nil || item.Output.Change == nil || item.Output.Failure != nil {
		return nil
	}
	var all []line
	for i, h := range hunksOf(item.Output.Change.Diff) {
		if i > 0 {
			all = append(all, line{faint.Render("  ⋮"), -1})
		}
		whole := style
		whole.Width = 1 << 16 // a line of the diff is a line of the card
		all = append(all, hunkLines(h, -1, false, whole)...)
	}
	shown := all
	if len(all) > cardDiffLines+1 { // the line that says how many are left out takes as much room as one of them
		shown = all[:cardDiffLines]
	}
	for _, l := range shown {
		lines = append(lines, ansi.Truncate(l.text, max(style.Width, 20), "…"))
	}
	if more := len(all) - len(shown); more > 0 {
		lines = append(lines, faint.Render(fmt.Sprintf("  … %s, Ctrl-T", counted(more, "more line"))))
	}
	return lines
}

// hunksOf returns the hunks of a diff of one file.
func hunksOf(diff string) (all []protocol.Hunk) {
	for l := range strings.Lines(withoutHeader(diff)) {
		var h protocol.Hunk
		if strings.HasPrefix(l, "@@") {
			h.OldStart, h.OldLines = rangeOf(l, "-")
			h.NewStart, h.NewLines = rangeOf(l, "+")
			all = append(all, h)
		} else if len(all) > 0 {
			all[len(all)-1].Text += l
		}
	}
	return all
}

// rangeOf returns the first line and the number of lines after a sign in the head of a hunk, such as "@@ -3,7 +3,6 @@". A number
// that is absent is 1.
func rangeOf(head, sign string) (start, n int) {
	n = 1
	_, rest, _ := strings.Cut(head, " "+sign)
	_, _ = fmt.Sscanf(strings.SplitN(rest, " ", 2)[0], "%d,%d", &start, &n) // what is absent stays as it is
	return start, n
}
