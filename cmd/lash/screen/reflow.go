package screen

import (
	"cmp"
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
	reports      bool // it reports the place of the cursor
	keeps        bool // it leaves the line of the cursor as it is, all of its rows
}

// kindOf returns the kind of terminal of an environment. Most terminals wrap lines
// again when they become narrower. GNU Screen, XTerm and st cut them. Inside tmux,
// tmux is the terminal, and it wraps the line of the cursor like any other. Other
// terminals differ in that line: xterm.js, which VS Code and others contain, leaves it to the program.
//
// GNU Screen has an alternate screen only if its user wants one, and the terminals of VT100's
// family have none.
func kindOf(env []string) kind {
	k := kind{alternate: true, reports: true}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case value == "":
		case name == "TMUX":
			return kind{wrapsCursors: true, alternate: true, reports: true}
		case name == "TERM_PROGRAM" && value == "vscode":
			k.keeps = true
		case name == "STY":
			k.cuts, k.alternate = true, false
		case name == "XTERM_VERSION", name == "TERM" && strings.HasPrefix(value, "st-"):
			k.cuts = true
		case name == "TERM" && value == "dumb":
			k.alternate, k.reports = false, false
		case name == "TERM" && (slices.Contains(simple, value) || strings.HasPrefix(value, "screen")):
			k.alternate = false
		}
	}
	return k
}

// above returns the rows between the first row of a live area and the cursor, on a
// terminal that now has another width than when the area was painted.
func (k kind) above(a area, width int) (rows int) {
	if a.home || a.joins {
		return a.y
	}
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

// joins reports whether the rows of a live area form one line that wraps. When xterm.js is resized, it leaves the
// line of the cursor as it is: the rows above the cursor are then the same at any width. It would wrap other lines
// below the cursor, and then assume that they were above it. A terminal that may be xterm.js gets such a line only if the cursor
// waits in the first cell, where other terminals leave it, too.
func (k kind) joins(home bool) bool { return !k.cuts && !k.wrapsCursors && (home || k.keeps) }

// rows returns the lines of a live area, each on a row.
func (a area) rows() string {
	if !a.joins {
		return strings.Join(a.lines, "\r\n")
	}
	var b strings.Builder
	for i, l := range a.lines {
		if i == len(a.lines)-1 {
			b.WriteString(l)
			break
		}
		b.WriteString(ansi.Truncate(l, a.width-1, "") + a.join(l))
	}
	return b.String()
}

// join returns the sequences that write the last cell of a line, and go to the next row as a terminal does when it wraps
// a line, at any width.
func (a area) join(line string) string {
	last := ansi.Cut(line, a.width-1, a.width)
	if ansi.StringWidth(last) != 1 {
		last = " "
	}
	return ansi.CursorForward(999) + ansi.SetModeAutoWrap + last + " \r" + ansi.ResetModeAutoWrap
}

// overwrite returns the sequences that replace a line of a live area whose rows form one line. Erasing the first cell would
// end the join of the rows.
func (a area) overwrite(line string) string {
	erase := ansi.EraseLineRight
	if ansi.StringWidth(line) == a.width {
		erase = ""
	}
	return ansi.ResetModeAutoWrap + cmp.Or(line, " ") + erase + ansi.SetModeAutoWrap
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
