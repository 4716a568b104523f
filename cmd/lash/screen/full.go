package screen

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Full sets the frame to the whole screen, in the place of the live area. It is painted
// on the alternate screen of the terminal, so that the scrollback stays exactly as it is,
// also while the terminal is resized. Lines that are committed at that time wait for the next
// live area. The cursor is at column x of line y, or hidden if x is -1.
//
// tmux loses the join of a line that wraps at the top of the screen at that moment; its text stays.
// A terminal that may have no alternate screen has the frame in a live area of all rows.
func (s *Screen) Full(lines []string, x, y int) {
	s.next = area{lines: slices.Clone(lines), x: x, y: y, full: true}
}

// paintFull returns the sequences that paint the whole screen.
func (s *Screen) paintFull(next area) string {
	before := ""
	switch {
	case !s.shown.full:
		before = s.repaint(area{}) + ansi.SetModeAltScreenSaveCursor
	case next.width == s.shown.width && len(next.lines) == len(s.shown.lines):
		return s.shown.patch(next)
	}
	var b strings.Builder
	b.WriteString(before + ansi.CursorHomePosition + ansi.ResetModeAutoWrap)
	for i, l := range next.lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(ansi.EraseEntireLine + l)
	}
	b.WriteString(ansi.SetModeAutoWrap)
	return b.String() + moved(len(next.lines)-1, next.y) + "\r" + right(next.x)
}

// leaveFull returns the sequence that returns to the main screen, and makes the next
// frame start where the live area was. It erases the alternate screen first: if the terminal has
// become wider since the program entered it, tmux 3.3 would wrap its lines into the scrollback.
func (s *Screen) leaveFull() string {
	if !s.shown.full {
		return ""
	}
	s.Forget()
	return ansi.CursorHomePosition + ansi.EraseScreenBelow + ansi.ResetModeAltScreenSaveCursor
}
