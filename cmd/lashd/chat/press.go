package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/rpc/protocol"
)

// pressed does what a key means.
func (u *ui) pressed(m tea.KeyPressMsg) tea.Cmd {
	name := m.String()
	if name != "ctrl+c" {
		u.leaving = false
	}
	switch name {
	case "ctrl+c":
		return u.ctrlC()
	case "ctrl+d":
		if u.in.value() == "" {
			return tea.Quit
		}
	case "esc":
		if u.talk.turn != "" {
			return u.interrupt()
		}
		return nil
	case "enter":
		return u.entered()
	}
	if !u.in.key(name) && m.Text != "" {
		u.in.insert(m.Text)
	}
	return nil
}

// ctrlC clears what was typed, or stops the running turn. A second Ctrl-C leaves the chat; the hint below says so.
func (u *ui) ctrlC() tea.Cmd {
	if u.leaving {
		return tea.Quit
	}
	u.leaving = true
	switch {
	case u.in.value() != "":
		u.in.set("")
	case u.talk.turn != "":
		return u.interrupt()
	}
	return nil
}

// entered sends what was entered: as a command, as the answer to a question, or to the session.
func (u *ui) entered() tea.Cmd {
	text, literal := strings.CutPrefix(u.in.take(), "//")
	if literal { // a text that begins with a slash
		text = "/" + text
	}
	d := u.talk.asked()
	switch {
	case text == "":
		return nil
	case strings.HasPrefix(text, "/") && !literal:
		return u.command(text)
	case u.talk.session.ID == "":
		u.in.set(again(text))
		return nil // there is no session yet
	case d != nil && Chosen(d, text) != "": // a whole line, as somebody may be writing something else when the question comes
		return u.respond(d, Chosen(d, text), "")
	case d != nil && slices.Contains(d.Choices, protocol.ChooseAnswer):
		return u.respond(d, protocol.ChooseAnswer, text)
	}
	return u.input(text, protocol.BusySteer)
}

// again is what has to be entered for a text.
func again(text string) string {
	if strings.HasPrefix(text, "/") {
		return "/" + text
	}
	return text
}
