package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/rpc/protocol"
)

// pressed handles a key press. Keys that the chat does not use go to the editor,
// and other printable ones insert their text.
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

// ctrlC clears the input or, if the input is empty, stops the running turn. A
// second Ctrl-C in a row quits; the hint says so.
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

// entered handles the Enter key. The input is a command, the answer to the open
// decision, or an input for the session, in this order. A message to the agent is
// possible while a decision is open, unless the decision accepts text.
func (u *ui) entered() tea.Cmd {
	text, literal := strings.CutPrefix(u.in.take(), "//")
	if literal { // "//" escapes an input that begins with a slash
		text = "/" + text
	}
	d := u.talk.asked()
	switch {
	case text == "":
		return nil
	case strings.HasPrefix(text, "/") && !literal:
		return u.command(text)
	case u.talk.session.ID == "":
		u.in.set(again(text)) // the session is not open yet
		if u.lacking {
			return u.tryAgain() // there may be a model now
		}
		return nil
	case d != nil && Chosen(d, text) != "": // only a whole line counts: the user may be typing when the decision opens
		return u.respond(d, Chosen(d, text), "")
	case d != nil && slices.Contains(d.Choices, protocol.ChooseAnswer):
		return u.respond(d, protocol.ChooseAnswer, text)
	}
	return u.input(text, protocol.BusySteer)
}

// again returns the line that the user must type to send text: it escapes a leading slash.
func again(text string) string {
	if strings.HasPrefix(text, "/") {
		return "/" + text
	}
	return text
}
