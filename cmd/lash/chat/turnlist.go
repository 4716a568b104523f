package chat

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/markdown"
	"lashd/cmd/lash/picker"
	"lashd/cmd/lash/prompt"
	"lashd/cmd/lash/turns"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// turnList lists the turns of a session that the model's history has, newest first. From it a person
// looks at a turn, forks the session there, goes back to before it, or undoes its file changes.
type turnList struct {
	call    func(method string, params, result any) error
	session protocol.SessionID

	list    picker.List
	turns   turns.List
	loading bool
	fault   string // why something could not be read; "": all was
	details *details
	back    *goingBack
}

// The messages of the list.
type (
	historyMsg struct {
		page protocol.SessionReadResult
		err  error
	}
	pointsMsg struct {
		points []protocol.FilePoint
		err    error
	}
	filesMsg struct {
		of    protocol.TurnID
		files []protocol.FileDiff
		err   error
	}
)

// openTurns opens the list of turns.
func openTurns(u *ui, _ string) tea.Cmd {
	t := &turnList{session: u.talk.session.ID, loading: true}
	t.call = func(method string, params, result any) error { return u.session.Call(u.ctx, method, params, result) }
	t.fill()
	return openOverlay(u, t, tea.Batch(t.readHistory(""), t.readPoints))
}

// readHistory returns a command that reads a page of the history.
func (t *turnList) readHistory(cursor string) tea.Cmd {
	params := protocol.SessionReadParams{SessionID: t.session, Cursor: cursor, Limit: turns.Page}
	return func() tea.Msg {
		var m historyMsg
		m.err = t.call("session/read", params, &m.page)
		return m
	}
}

// readPoints is the command that reads what the turns changed in files.
func (t *turnList) readPoints() tea.Msg {
	points, err := turns.ReadPoints(t.call, t.session)
	return pointsMsg{points, err}
}

// update implements overlay.
func (t *turnList) update(msg tea.Msg) (tea.Cmd, bool) {
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		return t.key(m)
	case tea.PasteMsg:
		t.list.Paste(m.Content)
	case historyMsg:
		return t.read(m), true
	case pointsMsg:
		return t.knowPoints(m), true
	case filesMsg:
		return t.knowFiles(m), true
	case dryRunMsg:
		return t.tried(m), true
	case faultMsg:
		t.fault = string(m)
	}
	return nil, true
}

// faultMsg says why something that the list asked for failed.
type faultMsg string

// key handles a key press.
func (t *turnList) key(m tea.KeyPressMsg) (tea.Cmd, bool) {
	switch {
	case t.back != nil:
		return t.back.key(t, m)
	case t.details != nil:
		if !t.details.key(m.String()) {
			t.details = nil
		}
		return nil, true
	case t.list.Typing:
		t.filterKey(m)
		return nil, true
	}
	t.fault = ""
	turn := t.marked()
	switch name := m.String(); {
	case name == "esc" || name == "ctrl+c" || name == "q":
		return nil, false
	case t.list.Key(m):
	case name == "/":
		t.list.Typing = true
	case turn == nil:
	case name == "enter":
		t.details = &details{turn: turn}
	case name == "f":
		return t.fork(turn), true
	case name == "r":
		return t.goBack(turn, choicesOf(t.turns.Ways(turn))), true
	case name == "u":
		return t.undoes(turn), true
	}
	return nil, true
}

// filterKey handles a key press while the filter is typed. Enter keeps it, and Esc clears it.
func (t *turnList) filterKey(m tea.KeyPressMsg) {
	switch m.String() {
	case "esc", "ctrl+c":
		t.list.ClearFilter()
		t.list.Typing = false
	case "enter":
		t.list.Typing = false
	default:
		t.list.Key(m)
	}
	t.fill()
}

// marked returns the marked turn, or nil.
func (t *turnList) marked() *turns.Turn {
	e, _ := t.list.Marked()
	return t.turns.Find(protocol.TurnID(e.ID))
}

// read takes a page of the history, and reads the one before it.
func (t *turnList) read(m historyMsg) tea.Cmd {
	if t.loading = m.err == nil && m.page.NextCursor != ""; m.err != nil {
		t.fault = m.err.Error()
	}
	t.turns.Add(m.page.Data)
	t.fill()
	if !t.loading {
		return t.readPoints // of the turns that are known now
	}
	return t.readHistory(m.page.NextCursor)
}

// knowPoints takes the file points, and reads the files of the newest turn that changed some.
func (t *turnList) knowPoints(m pointsMsg) tea.Cmd {
	if m.err != nil {
		t.fault = m.err.Error()
		return nil
	}
	t.turns.AddPoints(m.points)
	t.fill()
	return t.readFiles()
}

// readFiles returns a command that reads the files of the newest turn whose files are not known, if the history is whole.
func (t *turnList) readFiles() tea.Cmd {
	turn := t.turns.Uncounted()
	if t.loading || turn == nil {
		return nil
	}
	turn.Counted = true
	m, point := filesMsg{of: turn.ID}, turn.Point.ID
	return func() tea.Msg {
		m.files, m.err = turns.ReadFiles(t.call, t.session, point)
		return m
	}
}

// knowFiles takes the files of a turn, and reads those of the next one.
func (t *turnList) knowFiles(m filesMsg) tea.Cmd {
	if turn := t.turns.Find(m.of); turn != nil {
		turn.Files = m.files
	}
	if m.err != nil {
		t.fault = m.err.Error()
	}
	t.fill()
	return t.readFiles()
}

// fill puts the turns into the list.
func (t *turnList) fill() {
	t.list.Head, t.list.Empty = "Turns of this session, newest first", "No turn has these words."
	switch {
	case t.loading:
		t.list.Head, t.list.Empty = t.list.Head+" (reading…)", "Reading the turns…"
	case len(t.turns) == 0:
		t.list.Empty = "There are no turns yet."
	}
	t.list.Keys = "Enter shows it · f forks · r goes back to before it · u undoes its files · / filters · Esc"
	if t.list.Typing {
		t.list.Asks, t.list.Keys = "words of a turn", "Enter keeps the filter · Esc clears it"
	}
	entries := make([]picker.Entry, 0, len(t.turns))
	for _, turn := range slices.Backward(t.turns) {
		entries = append(entries, picker.Entry{ID: string(turn.ID), Title: turn.Title(), Detail: t.detail(turn), Words: inputOf(turn).Text()})
	}
	t.list.Set(entries)
}

// inputOf returns what people sent to a turn, as it is typed: its inputs, one below the other.
func inputOf(turn *turns.Turn) prompt.Draft { return prompt.DraftWith(turn.Input()) }

// detail describes a turn on a line: its number once that is known, its age, and the files that it changed.
func (t *turnList) detail(turn *turns.Turn) string {
	line := faint.Render(ago(turn.AtMs()))
	if !t.loading {
		line = faint.Render(fmt.Sprintf("turn %d · ", t.turns.Number(turn))) + line
	}
	if turn.Point == nil {
		return line
	}
	line += faint.Render(" · ") + changedCount(turn.Point)
	if added, removed := turns.Lines(turn.Files); added+removed > 0 {
		line += " " + good.Render(fmt.Sprint("+", added)) + " " + bad.Render(fmt.Sprint("-", removed))
	}
	if turn.Point.Undone {
		line += faint.Render(" · ") + asking.Render("undone")
	}
	return line
}

// view implements overlay.
func (t *turnList) view(style markdown.Style, height int) (rows []string, x, y int) {
	switch {
	case t.back != nil:
		return t.back.view(style.Width, height), -1, 0
	case t.details != nil:
		return t.details.view(style, height), -1, 0
	}
	rows, x, y = t.list.View(style.Width, height, func(width, height int) []string {
		turn := t.marked()
		if turn == nil {
			return nil
		}
		style.Width = width
		return brief(turn, style, height)
	})
	if t.fault != "" {
		rows[len(rows)-1] = bad.Render("✗ ") + termtext.OneLine(t.fault, 400)
	}
	return rows, x, y
}

// brief renders a turn beside the list: its files, and the end of what was said.
func brief(turn *turns.Turn, style markdown.Style, height int) (lines []string) {
	for i := range turn.Files {
		if i == height/3 {
			lines = append(lines, faint.Render(fmt.Sprintf("  … %d more files", len(turn.Files)-i)))
			break
		}
		lines = append(lines, changedFile(&turn.Files[i], style.Width))
	}
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	return append(lines, lastMessages(turn.Items, style, style.Width, max(height-len(lines), 1))...)
}

// changedFile describes the change of a file on a line.
func changedFile(f *protocol.FileDiff, width int) string {
	line := fmt.Sprintf("%s %s", f.Effect, termtext.OneLine(f.Path, max(width-24, 10)))
	if f.Added+f.Removed > 0 {
		line += " " + good.Render(fmt.Sprint("+", f.Added)) + " " + bad.Render(fmt.Sprint("-", f.Removed))
	}
	return line
}
