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
