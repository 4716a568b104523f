// Package screen paints a program at the bottom of a terminal. Finished lines go
// to the scrollback of the terminal and never change again. Below them is the live
// area: a few lines that the program may change at any time, with the cursor. For a
// while, a program may have the whole screen instead, such as for a long list.
//
// The scrollback stays exact if the terminal keeps its size between a frame and the next
// one. A frame that is on its way while the terminal is resized was made for another
// width: the rows that it goes up to replace the live area may be wrong then. Run therefore
// paints nothing for a moment after a resize, and then asks the terminal for its width. A frame after
// a live area without a cursor goes up no rows, and is exact at any moment (see Live).
//
// Run connects a program to the keyboard and to the signals of the terminal, and
// restores the terminal in every case.
package screen

import (
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Screen holds the next frame and what the last one left on the terminal. Commit,
// Live and Send change the next frame; Paint writes it. A Screen is not safe for
// concurrent use: only the event loop uses it.
type Screen struct {
	out     io.Writer
	size    func() (width, height int) // asks the terminal; nil: Resize tells the size
	profile colorprofile.Profile       // colors that the terminal lacks are converted or removed
	kind    kind
	width   int // of the terminal, in columns
	height  int // of the terminal, in rows

	finished []string // lines for the scrollback
	raw      string   // control sequences to send with the frame
	next     area     // the live area to paint
	shown    area     // the live area on the terminal
	drawn    bool     // shown is on the terminal
	asked    bool     // the terminal will report the width at which it has painted shown
	due      int      // the reports that will come, also those of earlier frames
	checking bool     // the terminal will report its width before the next frame
	checked  int      // the width that it reported so; 0: none since the last frame or resize
}

// area is a live area: its lines, none wider than width, and the cursor's column
// and line in it.
type area struct {
	lines []string
	x, y  int
	width int  // of the terminal when it was painted
	full  bool // it is the whole screen, on the alternate screen of the terminal
	home  bool // the cursor is hidden, in the first cell
	joins bool // its rows form one line that wraps
}

// New returns a Screen that writes to out. env is the environment of the process:
// TERM and the like say how the terminal treats lines when it is resized.
func New(out io.Writer, profile colorprofile.Profile, env []string) *Screen {
	return &Screen{out: out, profile: profile, kind: kindOf(env), width: 80, height: 24}
}

// Width returns the columns of the terminal.
func (s *Screen) Width() int { return s.width }

// Height returns the rows of the terminal.
func (s *Screen) Height() int { return s.height }

// Resize tells the size of the terminal. Sizes below one column and one row, which
// some terminals report for a moment, are raised to that.
func (s *Screen) Resize(width, height int) {
	s.width, s.height = max(width, 1), max(height, 1)
}

// Room returns the number of lines that a live area may have: a quarter of the
// rows, at most eight and at least three. A terminal that becomes smaller wraps them, and what
// it then moves to the scrollback cannot be replaced. Four times narrower, or half as
// wide and half as high, it still has the whole area on the screen.
func (s *Screen) Room() int { return max(min(8, s.height/4), 3) }

// Commit adds finished lines to the scrollback with the next frame. A line may be
// wider than the terminal, which wraps it; it must not contain a newline.
func (s *Screen) Commit(lines ...string) { s.finished = append(s.finished, lines...) }

// Live sets the live area. Lines are cut at the width of the terminal. The cursor
// is at column x of line y, both from 0.
//
// If x is -1, the cursor is hidden and waits in the first cell. The next frame then replaces
// the live area from there, without going up, whatever the terminal did with the rows below. A
// program should do that while lines are finished often.
func (s *Screen) Live(lines []string, x, y int) {
	s.next = area{lines: slices.Clone(lines), x: x, y: y, home: x < 0}
}

// Send sends a control sequence that changes nothing on the screen, such as a
// bell, with the next frame.
func (s *Screen) Send(sequence string) { s.raw += sequence }

// moves reports whether the next frame moves the live area: it has finished lines, or
// another size than the last one. Such a frame relies on the size of the terminal.
func (s *Screen) moves() bool {
	if s.next.full && s.shown.full {
		return false
	}
	return len(s.finished) > 0 || len(s.next.lines) != len(s.shown.lines) || s.next.home != s.shown.home || s.width != s.shown.width
}

// Paint writes the frame, in one write. It writes nothing if the terminal shows it
// already.
func (s *Screen) Paint() error {
	if s.size != nil {
		s.Resize(s.size())
	}
	next := s.fitted()
	frame := s.frame(next)
	if frame != "" {
		cursor := ansi.SetModeTextCursorEnable
		if s.next.x < 0 {
			cursor = ""
		}
		frame = ansi.SetModeSynchronizedOutput + ansi.ResetModeTextCursorEnable + frame + cursor + ansi.ResetModeSynchronizedOutput
	}
	frame += s.raw
	s.raw, s.shown, s.drawn, s.checked = "", next, true, 0
	for part := range parts(frame) {
		if _, err := io.WriteString(s.out, part); err != nil {
			return err
		}
	}
	return nil
}

// mostWritten is the longest part of a frame, in bytes, if its lines allow it. The kernel passes such a
// part on whole.
const mostWritten = 2000

// parts splits a frame after lines. A terminal that is resized between two parts has its cursor in an
// empty row then. Within a line, xterm.js would cut what the row has so far.
func parts(frame string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(frame) > mostWritten {
			end := strings.LastIndexByte(frame[:mostWritten], '\n') + 1
			if end == 0 {
				end = strings.IndexByte(frame, '\n') + 1
			}
			if end == 0 {
				break
			}
			if !yield(frame[:end]) {
				return
			}
			frame = frame[end:]
		}
		if frame != "" {
			yield(frame)
		}
	}
}

// frame returns the sequences that show next, with the finished lines, or "" if the
// terminal shows it already.
func (s *Screen) frame(next area) string {
	if next.full {
		return s.paintFull(next)
	}
	left := s.leaveFull()
	if s.drawn && len(s.finished) == 0 && len(next.lines) == len(s.shown.lines) && next.width == s.shown.width && next.home == s.shown.home {
		return s.shown.patch(next)
	}
	return left + s.repaint(next)
}

// Clear removes the live area from the terminal, which then belongs to another program or to
// the shell. Finished lines are written first. The next Paint starts at the place
// where the cursor is then.
func (s *Screen) Clear() error {
	next := s.next
	s.next = area{}
	err := s.Paint()
	s.next = next
	s.Forget()
	return err
}

// Forget makes the next Paint start where the cursor is, and leave everything
// above as it is. It is for a terminal that another program has used.
func (s *Screen) Forget() {
	s.shown, s.drawn, s.asked, s.checking, s.due = area{}, false, false, false, 0
}

// fitted returns the next live area as it fits the terminal: with lines cut, in
// the colors of the terminal, and without the first lines if there are more than
// rows.
func (s *Screen) fitted() area {
	a := area{x: s.next.x, y: s.next.y, width: s.width, full: s.next.full && s.kind.alternate, home: s.next.home, joins: !s.next.full && s.kind.joins(s.next.home)}
	lines := s.next.lines
	if s.next.full {
		lines = append(slices.Clone(lines), make([]string, max(0, s.height-len(lines)))...)[:s.height]
	}
	if over := len(lines) - s.height; over > 0 {
		lines, a.y = lines[over:], a.y-over
	}
	for _, l := range lines {
		a.lines = append(a.lines, s.colored(joined(ansi.Truncate(l, s.width, ""))))
	}
	a.x, a.y = min(max(a.x, 0), s.width-1), min(max(a.y, 0), max(len(a.lines)-1, 0))
	if a.home {
		a.x, a.y = 0, 0
	}
	return a
}

// joined returns a line without zero-width joiners that join nothing, as in text
// that is cut off within an emoji. tmux would join the next character, even on
// another line, and not show it.
func joined(line string) string {
	const joiner = "\u200d"
	return strings.TrimSuffix(strings.ReplaceAll(line, joiner+"\x1b", "\x1b"), joiner)
}

// colored converts a line to the colors of the terminal.
func (s *Screen) colored(line string) string {
	if s.profile == colorprofile.TrueColor || !strings.Contains(line, "\x1b") {
		return line
	}
	var out strings.Builder
	w := colorprofile.Writer{Forward: &out, Profile: s.profile}
	_, _ = w.WriteString(line) // to memory
	return out.String()
}

// repaint returns a frame that replaces the live area, with the finished lines
// above it. The terminal wraps finished lines by itself. It cannot wrap those of
// the live area: their rows must be known to replace them later.
func (s *Screen) repaint(next area) string {
	var b strings.Builder
	b.WriteString("\r")
	if up := s.kind.above(s.shown, s.width); s.drawn && up > 0 {
		b.WriteString(ansi.CursorUp(up))
	}
	// From the first cell of the screen, tmux would move all rows to the scrollback
	// instead of erasing them.
	b.WriteString(ansi.CursorForward(1) + ansi.EraseScreenBelow + "\r" + ansi.EraseEntireLine)
	for _, l := range s.finished {
		b.WriteString(s.colored(joined(l)) + "\r\n")
	}
	s.finished = nil
	if len(next.lines) > 0 {
		b.WriteString(ansi.ResetModeAutoWrap + next.rows() + s.askWidth(next) + ansi.SetModeAutoWrap)
		b.WriteString(moved(len(next.lines)-1, next.y) + "\r" + right(next.x))
	}
	return b.String()
}

// askWidth returns the sequences that make the terminal report the column of its right margin. Where the rows
// of the live area are then depends on the width at which they were painted.
func (s *Screen) askWidth(next area) string {
	s.asked = !next.home && !next.joins && s.kind.reports
	if !s.asked {
		return ""
	}
	s.due++
	return ansi.CursorForward(999) + ansi.RequestCursorPositionReport
}

// painted takes the width at which the terminal has painted the live area. If that is not the width
// for which it was made, the terminal was resized while the frame was on its way, and has cut the lines.
func (s *Screen) painted(width int) {
	s.due = max(s.due-1, 0)
	if !s.asked && !s.checking || s.due > 0 {
		return
	}
	if s.checking {
		s.checking, s.checked = false, width
		return
	}
	s.asked = false
	if width >= s.shown.width || width < 1 {
		return
	}
	s.shown.width, s.shown.x = width, min(s.shown.x, width-1)
	for i, l := range s.shown.lines {
		s.shown.lines[i] = ansi.Truncate(l, width, "")
	}
}

// unsure reports whether the next frame goes up rows that the terminal has wrapped, without knowing that it has the width that the process
// knows. tmux tells the process a new size up to 250 ms late.
func (s *Screen) unsure() bool {
	wraps := s.drawn && !s.shown.home && !s.shown.joins && !s.shown.full && !s.kind.cuts
	return wraps && s.kind.reports && s.width != s.shown.width && s.checked != s.width
}

// check makes the terminal report its width.
func (s *Screen) check() {
	s.checking, s.due = true, s.due+1
	_, _ = io.WriteString(s.out, ansi.CursorForward(999)+ansi.RequestCursorPositionReport+"\r"+right(min(s.shown.x, s.width-1)))
}

// unanswered says that the terminal does not report its width.
func (s *Screen) unanswered() { s.asked, s.checking, s.kind.reports = false, false, false }

// patch returns a frame that writes the lines of next that differ from a, which
// has as many.
func (a area) patch(next area) string {
	var b strings.Builder
	at := a.y
	for i, l := range next.lines {
		if l == a.lines[i] {
			continue
		}
		b.WriteString(moved(at, i) + "\r")
		if a.joins {
			b.WriteString(next.overwrite(l))
		} else {
			b.WriteString(changed(a.lines[i], l))
		}
		at = i
	}
	if b.Len() == 0 && a.x == next.x && a.y == next.y {
		return ""
	}
	return b.String() + moved(at, next.y) + "\r" + right(next.x)
}

// changed returns what replaces a line, from its first column. Of a line without
// styles only the end that differs is written: a screen reader then reads the
// characters that were typed, not all of them again.
func changed(old, line string) string {
	same := 0
	if !strings.ContainsRune(old+line, '\x1b') {
		same = samePrefix(old, line)
	}
	erase := ansi.EraseEntireLine
	if same > 0 {
		erase = ansi.EraseLineRight
	}
	return right(ansi.StringWidth(line[:same])) + erase + ansi.ResetModeAutoWrap + line[same:] + ansi.SetModeAutoWrap
}

// samePrefix returns the length of the graphemes with which both texts begin.
func samePrefix(a, b string) (n int) {
	for g := graphemes.FromString(b); g.Next() && strings.HasPrefix(a[n:], g.Value()); {
		n += len(g.Value())
	}
	return n
}

// moved returns the sequence that moves the cursor from a line to another.
func moved(from, to int) string {
	switch {
	case from > to:
		return ansi.CursorUp(from - to)
	case from < to:
		return ansi.CursorDown(to - from)
	}
	return ""
}

// right returns the sequence that moves the cursor right from the first column.
func right(x int) string {
	if x == 0 {
		return ""
	}
	return ansi.CursorForward(x)
}
