package chat

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// notice decides whether the terminal rings its bell when a turn ends or a question
// waits. It does so if the user is away: the terminal has no focus or, if it does not
// report focus, no key was pressed for awayTime.
type notice struct {
	off     bool // LASHD_NOTIFY=off
	focused *bool
	key     time.Time // of the newest key press
	waits   bool      // the user had a reason to look at the last message
	ring    bool      // the next frame rings
}

const awayTime = 10 * time.Second

// saw notes a message of the event loop. busy reports whether a turn runs that waits for no
// answer.
func (n *notice) saw(msg tea.Msg, busy bool) {
	switch msg.(type) {
	case tea.FocusMsg:
		n.focused = new(true)
	case tea.BlurMsg:
		n.focused = new(false)
	case tea.KeyPressMsg, tea.PasteMsg:
		n.key = time.Now()
	}
	away := time.Since(n.key) > awayTime
	if n.focused != nil {
		away = !*n.focused
	}
	n.ring = n.ring || !n.waits && !busy && away && !n.off
	n.waits = !busy
}

// sequence returns what to send to the terminal with the next frame.
func (n *notice) sequence() string {
	if !n.ring {
		return ""
	}
	n.ring = false
	return "\a"
}
