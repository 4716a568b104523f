package screen

import (
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

func TestPaintWritesOnlyWhatChanged(t *testing.T) {
	var out strings.Builder
	s := New(&out, colorprofile.ANSI, nil)
	s.Live([]string{"one", "two"}, 0, 1)
	if err := s.Paint(); err != nil || !strings.Contains(out.String(), "one\r\ntwo") {
		t.Fatalf("part/12 the first frame is %q (%v)", out.String(), err)
	}
	out.Reset()
	s.Live([]string{"one", "two"}, 0, 1)
	if s.Paint(); out.Len() != 0 {
		t.Errorf("part/12 a frame without changes is %q", out.String())
	}
	s.Live([]string{"one", "\x1b[31mthree"}, 0, 1)
	if s.Paint(); strings.Contains(out.String(), "one") || !strings.Contains(out.String(), "three") {
		t.Errorf("part/12 a frame with one change is %q", out.String())
	}
}

func TestColors(t *testing.T) {
	for profile, want := range map[colorprofile.Profile]string{
		colorprofile.ANSI: "\x1b[31mred\x1b[m\x1b[1mstrong\x1b[m", colorprofile.ASCII: "\x1b[mred\x1b[m\x1b[1mstrong\x1b[m", colorprofile.NoTTY: "redstrong",
	} {
		var out strings.Builder
		s := New(&out, profile, nil)
		s.Commit("\x1b[31mred\x1b[m\x1b[1mstrong\x1b[m")
		if s.Paint(); !strings.Contains(out.String(), want+"\r\n") {
			t.Errorf("issue/19-8 with %s it prints %q, want %q", profile, out.String(), want)
		}
	}
}

func TestZeroWidthJoinersThatJoinNothing(t *testing.T) {
	var out strings.Builder
	s := New(&out, colorprofile.TrueColor, nil)
	s.Commit("cut 👩\u200d", "cut \x1b[1m👩\u200d\x1b[m", "whole 👩\u200d👧")
	if s.Paint(); !strings.Contains(out.String(), "cut 👩\r\ncut \x1b[1m👩\x1b[m\r\nwhole 👩\u200d👧\r\n") {
		t.Errorf("part/12 the frame is %q", out.String())
	}
}

func TestHiddenCursor(t *testing.T) {
	for x, hidden := range map[int]bool{-1: true, 0: false} {
		var out strings.Builder
		s := New(&out, colorprofile.ANSI, nil)
		s.Full([]string{"one"}, x, 0)
		if s.Paint(); strings.Contains(out.String(), "\x1b[?25h") == hidden {
			t.Errorf("part/12 with the cursor at %d the frame is %q", x, out.String())
		}
	}
}

func TestAFrameAfterARestingCursorGoesUpNoRows(t *testing.T) {
	for _, env := range []string{"TMUX=x", "TERM=xterm-256color", "TERM_PROGRAM=vscode", "XTERM_VERSION=1"} {
		var out strings.Builder
		s := New(&out, colorprofile.ANSI, []string{env})
		s.Resize(20, 10)
		s.Live([]string{"one", "two", "three"}, -1, 2)
		if s.Paint(); !strings.HasSuffix(strings.TrimSuffix(out.String(), "\x1b[?2026l"), "\x1b[2A\r") || strings.Contains(out.String(), "\x1b[?25h") {
			t.Errorf("issue/21-2 in %s the cursor does not rest in the first cell: %q", env, out.String())
		}
		out.Reset()
		s.Resize(9, 10)
		s.Commit("done")
		s.Live([]string{"four"}, 0, 0)
		if s.Paint(); strings.Contains(out.String(), "A") || !strings.Contains(out.String(), "\x1b[2Kdone\r\n") {
			t.Errorf("issue/21-2 in %s the next frame is %q", env, out.String())
		}
	}
}

func TestWidthAtWhichAFrameWasPainted(t *testing.T) {
	var out strings.Builder
	s := New(&out, colorprofile.ANSI, []string{"TERM=xterm-256color"})
	s.Resize(20, 10)
	s.Live([]string{"123456789 123456789 ", "› "}, 2, 1)
	if s.Paint(); !strings.Contains(out.String(), "\x1b[999C\x1b[6n") {
		t.Fatalf("issue/21-2 the frame does not ask for the width: %q", out.String())
	}
	s.painted(15) // it was resized before the frame arrived, and has cut the line
	s.Resize(15, 10)
	out.Reset()
	s.Commit("done")
	if s.Paint(); !strings.Contains(out.String(), "\r\x1b[A\x1b[C\x1b[J") {
		t.Errorf("issue/21-2 the next frame goes up another number of rows: %q", out.String())
	}
}

func TestRowsOfALiveAreaInXtermJs(t *testing.T) {
	var out strings.Builder
	s := New(&out, colorprofile.ANSI, []string{"TERM_PROGRAM=vscode"})
	s.Resize(6, 10)
	s.Live([]string{"one", "123456", "› "}, 2, 2)
	join := func(last string) string { return "\x1b[999C\x1b[?7h" + last + " \r\x1b[?7l" }
	if s.Paint(); !strings.Contains(out.String(), "one"+join(" ")+"12345"+join("6")+"› ") {
		t.Errorf("issue/21-2 its rows do not form one line: %q", out.String())
	}
	out.Reset()
	s.Resize(3, 10)
	s.Commit("done")
	if s.Paint(); !strings.Contains(out.String(), "\r\x1b[2A\x1b[C\x1b[J") {
		t.Errorf("issue/21-2 after it became narrower, it does not go up two rows: %q", out.String())
	}
}

func TestAFrameWaitsUntilTheTerminalHasTheWidth(t *testing.T) {
	var out strings.Builder
	s := New(&out, colorprofile.ANSI, []string{"TMUX=x"})
	s.Resize(20, 10)
	s.Live([]string{"123456789 123456789 ", "› "}, 2, 1)
	if err := s.Paint(); err != nil || s.unsure() {
		t.Fatalf("issue/21-2 it asks for the width without a resize (%v)", err)
	}
	s.painted(20)
	s.Resize(10, 10)
	for _, width := range []int{20, 10} { // tmux has not yet told of the second size
		out.Reset()
		if !s.unsure() {
			t.Errorf("issue/21-2 it is sure before the terminal says %d", width)
		}
		if s.check(); out.String() != "\x1b[999C\x1b[6n\r\x1b[2C" {
			t.Errorf("issue/21-2 it asks for the width with %q", out.String())
		}
		s.painted(width)
	}
	out.Reset()
	if s.unsure() {
		t.Error("issue/21-2 it is not sure of the width that the terminal says")
	}
	if s.Paint(); !strings.Contains(out.String(), "\r\x1b[2A\x1b[C\x1b[J") {
		t.Errorf("issue/21-2 the frame is %q", out.String())
	}
}
