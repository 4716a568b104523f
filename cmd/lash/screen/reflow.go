package screen

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"
)

// kind says what a terminal does with lines that are longer than its new width.
type kind struct {
	cuts         bool // it cuts them; others wrap them again
	wrapsCursors bool // it also wraps the line of the cursor
	alternate    bool // it has a second screen without a scrollback
}

// kindOf returns the kind of terminal of an environment. Most terminals wrap lines
// again when they become narrower. GNU Screen, XTerm and st cut them. Inside tmux,
// tmux is the terminal, and it wraps the line of the cursor like any other. Other
// terminals differ in that line: xterm.js, which many programs contain, leaves it to the program.
//
// GNU Screen has an alternate screen only if its user wants one, and the terminals of VT100's
// family have none.
func kindOf(env []string) kind {
	k := kind{alternate: true}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case value == "":
		case name == "TMUX":
			return kind{wrapsCursors: true, alternate: true}
		case name == "STY":
			k.cuts, k.alternate = true, false
		case name == "XTERM_VERSION", name == "TERM" && strings.HasPrefix(value, "st-"):
			k.cuts = true
		case name == "TERM" && (slices.Contains(simple, value) || strings.HasPrefix(value, "screen")):
			k.alternate = false
		}
	}
	return k
}

// above returns the rows between the first row of a live area and the cursor, on a
// terminal that now has another width than when the area was painted.
func (k kind) above(a area, width int) (rows int) {
	for _, l := range a.lines[:min(a.y, len(a.lines))] {
		if k.cuts || width >= a.width {
			rows++
		} else {
			rows += rowsOf(l, width)
		}
	}
	if k.wrapsCursors && width < a.width {
		rows += a.x / width
	}
	return rows
}

// rowsOf returns the rows that a terminal of a width needs for a line. A wide
// character that does not fit at the end of a row goes to the next one.
func rowsOf(line string, width int) int {
	rows, used := 1, 0
	for g := graphemes.FromString(ansi.Strip(line)); g.Next(); {
		w := ansi.StringWidth(g.Value())
		if used+w > width {
			rows, used = rows+1, 0
		}
		used += w
	}
	return rows
}
