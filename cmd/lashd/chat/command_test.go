package chat

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/rpc/protocol"
)

func TestHelpFitsATerminal(t *testing.T) {
	lines := strings.Split(ansi.Strip(help()), "\n")
	for _, l := range lines {
		if w := lipgloss.Width(l); w > 99 || strings.HasSuffix(l, " ") {
			t.Errorf("issue/6-4 %d wide: %q", w, l)
		}
	}
	if len(lines) > 26 {
		t.Errorf("issue/6-4 it has %d lines", len(lines))
	}
}

func TestLinesAreNotPadded(t *testing.T) {
	e := entry{item: item("itm_u", "short\n"+strings.Repeat("long ", 30)+"\nshort", protocol.ItemUserMessage)}
	if got := ansi.Strip(e.shown(60)); strings.Contains(got, "short  ") || strings.Count(got, "\n") != 4 {
		t.Errorf("issue/6-4 it is %q", got)
	}
}
