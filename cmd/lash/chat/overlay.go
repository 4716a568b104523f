package chat

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/markdown"
	"lashd/cmd/lash/screen"
)

// overlay has the whole screen, and gets all key presses, while it is open. Its methods are called by the
// event loop.
type overlay interface {
	// update handles a key press, a pasted text, and the messages of the overlay's own commands. It
	// reports whether the overlay stays open.
	update(msg tea.Msg) (cmd tea.Cmd, open bool)
	// view returns the rows of the screen, and the place of the cursor. style is for texts as wide as
	// the screen.
	view(style markdown.Style, height int) (rows []string, x, y int)
}

// openOverlay shows an overlay, and returns its first command. For a screen reader it is a numbered list.
func openOverlay(u *ui, o overlay, first tea.Cmd) tea.Cmd {
	if u.reader != nil {
		return spoken(u, o)
	}
	u.over = o
	return first
}

// overlayGets gives a message to the overlay.
func overlayGets(u *ui, msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "ctrl+z" {
		return screen.Stop
	}
	if u.over == nil {
		return nil // it was closed before its command ended
	}
	cmd, open := u.over.update(msg)
	if !open {
		u.over = nil
	}
	return cmd
}

// overlayScreen returns the rows of the overlay, and the place of the cursor. If a question waits behind
// it, the last row says so.
func overlayScreen(u *ui) (rows []string, x, y int) {
	rows, x, y = u.over.view(u.style, u.height)
	if u.talk.asked() != nil && len(rows) > 1 {
		rows[len(rows)-1] = asking.Render("The agent waits for your answer. Esc returns to its question.")
	}
	return rows, x, y
}

// ago says how long ago a time was, in its largest unit.
func ago(ms int64) string {
	d := time.Since(time.UnixMilli(ms))
	for _, u := range []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}} {
		n := int(d / u.size)
		switch {
		case u.name == "day" && n > 1:
			return fmt.Sprintf("%d days ago", n)
		case n > 0 && u.name != "day":
			return fmt.Sprintf("%d %s ago", n, u.name)
		}
	}
	return "now"
}
