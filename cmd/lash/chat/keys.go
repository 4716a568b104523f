package chat

import (
	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/screen"
)

// pressed handles a key press. Keys that the chat does not use go to the editor,
// and other printable ones insert their text.
func (u *ui) pressed(m tea.KeyPressMsg) tea.Cmd {
	name := m.String()
	if name != "ctrl+c" {
		u.leaving = false
	}
	before := u.escaped
	u.escaped = false
	if name == "ctrl+z" {
		return screen.Stop
	}
	if u.search != nil {
		return u.search.key(u, m)
	}
	if cmd, done := suggestKey(u, name); done {
		return cmd
	}
	if q := u.question(); q.byKey() && (u.reader == nil || u.card.lent()) {
		if cmd, done := q.key(m); done {
			return cmd
		}
	}
	switch name {
	case "ctrl+c":
		return u.ctrlC()
	case "ctrl+d":
		if u.in.Empty() {
			return tea.Quit
		}
	case "esc":
		return esc(u, before)
	case "ctrl+g":
		return openEditor(u.ctx, "", u.in.Editable(), ".md")
	case "tab":
		u.in.Expand()
		return nil
	case "ctrl+r":
		return runAgain(u)
	case "ctrl+o":
		return runOutside(u)
	case "ctrl+t":
		return openPager(u)
	case "ctrl+v":
		return readClipboard(u)
	case "ctrl+s":
		return openSearch(u)
	case "enter":
		return u.enter()
	case "up", "ctrl+p":
		if u.in.Empty() && canTakeBack(u) {
			return takeBack(u)
		}
	}
	if !u.in.Key(name) && m.Text != "" {
		u.in.Insert(m.Text)
	}
	return nil
}

// esc stops the running turn. Without one, a second Esc in a row in the empty prompt opens the list
// of turns; the hint says so. before says that the last key was such an Esc.
func esc(u *ui, before bool) tea.Cmd {
	switch {
	case u.talk.turn != "":
		return u.interrupt()
	case !u.in.Empty() || u.talk.session.ID == "" || u.card.mode != cardChoosing:
		return nil
	case before:
		return openTurns(u, "")
	}
	u.escaped = true
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
	case !u.in.Empty():
		u.in.Set("")
	case u.talk.turn != "":
		return u.interrupt()
	}
	return nil
}
