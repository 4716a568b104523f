package chat

import (
	"fmt"
	"strings"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Width is something that allowSession and allowAlways can cover. Index is its place
// in the decision's widths, or nil for exactly this call.
type Width struct {
	Text  string
	Index *int
}

// Lasting reports whether a choice covers later calls, too.
func Lasting(c protocol.DecisionChoice) bool {
	return c == protocol.ChooseAllowSession || c == protocol.ChooseAllowAlways
}

// WidthTitle says how long an answer holds.
func WidthTitle(c protocol.DecisionChoice) string {
	if c == protocol.ChooseAllowSession {
		return "Allow for the rest of this session:"
	}
	return "Always allow in this workspace:"
}

// Widths returns what an answer can cover, with the proposal first. Exactly this
// call is always among them.
func Widths(d *protocol.Decision) (all []Width) {
	exact := false
	if d.Detail != nil {
		for i, w := range d.Detail.Widths {
			all = append(all, Width{termtext.OneLine(w.Text, 300), new(i)})
			exact = exact || w.Rule == nil
		}
	}
	if exact || d.Call == nil {
		return all
	}
	if len(d.Varying) == 0 {
		return append(all, Width{"exactly this call", nil})
	}
	return append(all, Width{termtext.OneLine(d.Call.Name, 60) + " calls with " + termtext.Printable(covered(d)), nil})
}

// widthLines renders the list of widths with the keys that choose from it.
func (q *question) widthLines() []string {
	lines := []string{"  " + strong.Render(WidthTitle(q.choice))}
	for i, w := range Widths(q.d) {
		cursor, text := "  ", fmt.Sprintf("%d %s", i+1, w.Text)
		if i == q.width {
			cursor, text = asking.Render("▸ "), strong.Render(text)
		}
		lines = append(lines, strings.Split(fit("  "+cursor+strings.ReplaceAll(text, "\n", " "), q.inner()), "\n")...)
	}
	return append(lines, keyLines(q.inner(), "Enter", "Allow", "↑↓", "Choose", "Esc", "Back")...)
}
