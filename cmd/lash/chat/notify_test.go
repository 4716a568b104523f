package chat

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestBell(t *testing.T) {
	for _, c := range []struct {
		name string
		off  bool
		msg  tea.Msg
		want string
	}{
		{"part/12 the bell rings when a turn ends and the terminal has no focus", false, tea.BlurMsg{}, "\a"},
		{"part/12 the bell is silent while the terminal has the focus", false, tea.FocusMsg{}, ""},
		{"part/12 LASHD_NOTIFY=off silences the bell", true, tea.BlurMsg{}, ""},
		{"part/12 the bell is silent after a key press if the terminal does not report focus", false, tea.KeyPressMsg{}, ""},
	} {
		n := &notice{off: c.off, waits: true}
		n.saw(c.msg, true)
		n.saw(tickMsg{}, false)
		if got := n.sequence(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		n.saw(tickMsg{}, false)
		if got := n.sequence(); got != "" {
			t.Errorf("%s: it rings again", c.name)
		}
	}
}
