package chat

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/rpc/protocol"
)

// search finds an earlier input by its words. It has the place of the prompt, whose text
// stays.
type search struct {
	query prompt.Editor
	found []prompt.Earlier
	menu  prompt.Menu
}

// Limits of the history, in inputs: of a page of the daemon, and of the menu of a search.
const (
	earlierPage = 500
	mostFound   = 200
)

// searchSign is shown before the words of a search.
const searchSign = "search: "

// earlier says which inputs of other sessions the prompt has.
type earlier struct {
	cwd     string // of the sessions
	next    string // cursor of the next page; "": there is none
	reading bool
}

// earlierMsg has inputs that were sent in a directory, the newest first. cwd is empty if the
// daemon refused or was lost: the next open or search asks again.
type earlierMsg struct {
	cwd, next string
	texts     []string
}

// readEarlier returns a command that reads inputs which people sent to any session of this
// directory: the newest ones when the chat opens a session there, and with all the others.
func readEarlier(u *ui, all bool) tea.Cmd {
	e, cwd := &u.earlier, u.talk.session.Cwd
	if cwd == "" || e.reading || e.cwd == cwd && (!all || e.next == "") {
		return nil
	}
	p := protocol.SessionInputsParams{Cwd: cwd, Limit: earlierPage}
	if e.cwd == cwd {
		p.Cursor = e.next
	}
	e.reading = true
	return func() tea.Msg {
		m := earlierMsg{cwd: cwd}
		for {
			var r protocol.SessionInputsResult
			if err := u.session.Call(u.ctx, "session/inputs", p, &r); err != nil {
				return earlierMsg{}
			}
			for _, in := range r.Data {
				m.texts = append(m.texts, in.Text)
			}
			p.Cursor, m.next = r.NextCursor, r.NextCursor
			if !all || r.NextCursor == "" {
				return m
			}
		}
	}
}

// remember adds inputs of other sessions to the history.
func remember(u *ui, m earlierMsg) tea.Cmd {
	u.earlier = earlier{cwd: m.cwd, next: m.next}
	in := &u.in
	if u.card.lent() {
		in = &u.card.draft
	}
	in.Remember(m.texts)
	if u.search != nil {
		u.search.fill(u)
	}
	return nil
}

// openSearch opens the search of the history.
func openSearch(u *ui) tea.Cmd {
	if u.card.lent() {
		return nil
	}
	if u.reader != nil {
		return say("The search of earlier inputs needs a menu. Up and Down walk through them.")
	}
	u.search = &search{}
	u.search.fill(u)
	return readEarlier(u, true)
}

// fill looks for the words, and marks the newest input.
func (s *search) fill(u *ui) {
	s.found = u.in.Search(s.query.Text(), mostFound)
	var choices []prompt.Choice
	for _, p := range s.found {
		choices = append(choices, prompt.Choice{Text: strings.Join(strings.Fields(p.Text), " ")})
	}
	s.menu = prompt.MenuOf(choices, 0)
}

// key handles a key press. Enter and Tab put the marked input into the prompt, which can be
// undone; nothing is sent.
func (s *search) key(u *ui, m tea.KeyPressMsg) tea.Cmd {
	switch name := m.String(); name {
	case "esc", "ctrl+c", "ctrl+g":
		u.search = nil
	case "up", "ctrl+p":
		s.menu.Move(-1)
	case "down", "ctrl+n", "ctrl+s":
		s.menu.Move(1)
	case "enter", "tab":
		u.search = nil
		if _, ok := s.menu.Marked(); ok {
			u.in.SetDraft(s.found[s.menu.At()].Draft())
		}
	default:
		if !s.query.Key(name) && m.Text != "" {
			s.query.Insert(m.Text)
		}
		s.fill(u)
	}
	return nil
}

// paste adds a pasted text to the words.
func (s *search) paste(u *ui, text string) {
	s.query.Insert(strings.Join(strings.Fields(text), " "))
	s.fill(u)
}

// lines returns the line of the search, and the place of the cursor.
func (s *search) lines(width int) (lines []string, x, y int) {
	lines, x, y = s.query.View(max(width-len(searchSign), 10), 1)
	lines[0] = mine.Render(searchSign) + lines[0]
	switch {
	case s.query.Empty():
		lines[0] += faint.Render("words of an earlier input (Enter takes it)")
	case !s.menu.Open():
		lines[0] += faint.Render(" (no earlier input has these words)")
	}
	return lines, x + len(searchSign), y
}

// openMenu returns the menu below the prompt.
func (w *writing) openMenu() *prompt.Menu {
	if w.search != nil {
		return &w.search.menu
	}
	return &w.suggest.menu
}
