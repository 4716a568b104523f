package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/markdown"
	"lashd/cmd/lash/picker"
	"lashd/cmd/lash/prompt"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// turnPage is the number of nodes of the history that are read at once.
const turnPage = 500

// turnList lists the turns of a session that the model's history has, newest first. From it a person
// looks at a turn, forks the session there, goes back to before it, or undoes its file changes.
type turnList struct {
	call    func(method string, params, result any) error
	session protocol.SessionID

	list    picker.List
	turns   []*listedTurn // oldest first
	loading bool
	fault   string // why something could not be read; "": all was
	details *details
	back    *goingBack
}

// listedTurn is a turn of the list.
type listedTurn struct {
	id      protocol.TurnID
	items   []protocol.Item
	point   *protocol.FilePoint // what it changed in files; nil: nothing
	files   []protocol.FileDiff // once they are read
	counted bool                // files has been read
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
	params := protocol.SessionReadParams{SessionID: t.session, Cursor: cursor, Limit: turnPage}
	return func() tea.Msg {
		var m historyMsg
		m.err = t.call("session/read", params, &m.page)
		return m
	}
}

// readPoints is the command that reads what the turns changed in files.
func (t *turnList) readPoints() tea.Msg {
	var r protocol.SessionPointsResult
	err := t.call("session/points", protocol.SessionParams{SessionID: t.session}, &r)
	return pointsMsg{r.Data, err}
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
		return t.goBack(turn, rewinds(turn)), true
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
func (t *turnList) marked() *listedTurn {
	e, _ := t.list.Marked()
	return t.turn(protocol.TurnID(e.ID))
}

// turn returns a turn of the list, or nil.
func (t *turnList) turn(id protocol.TurnID) *listedTurn {
	for _, turn := range t.turns {
		if turn.id == id {
			return turn
		}
	}
	return nil
}

// read takes a page of the history, and reads the one before it.
func (t *turnList) read(m historyMsg) tea.Cmd {
	if t.loading = m.err == nil && m.page.NextCursor != ""; m.err != nil {
		t.fault = m.err.Error()
	}
	var page []*listedTurn
	for _, item := range m.page.Data {
		if item.TurnID == "" {
			continue
		}
		if n := len(page); n == 0 || page[n-1].id != item.TurnID {
			page = append(page, &listedTurn{id: item.TurnID})
		}
		page[len(page)-1].items = append(page[len(page)-1].items, item)
	}
	if n := len(page); n > 0 && len(t.turns) > 0 && page[n-1].id == t.turns[0].id {
		t.turns[0].items = append(page[n-1].items, t.turns[0].items...)
		page = page[:n-1]
	}
	t.turns = append(page, t.turns...)
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
	for i := range m.points {
		if p := &m.points[i]; p.Kind == protocol.PointTurn && p.Files > 0 {
			if turn := t.turn(p.TurnID); turn != nil {
				turn.point = p
			}
		}
	}
	t.fill()
	return t.readFiles()
}

// readFiles returns a command that reads the files of the newest turn whose files are not known, if the history is whole.
func (t *turnList) readFiles() tea.Cmd {
	if t.loading {
		return nil
	}
	for _, turn := range slices.Backward(t.turns) {
		if turn.point == nil || turn.counted {
			continue
		}
		turn.counted = true
		m, params := filesMsg{of: turn.id}, protocol.SessionDiffParams{SessionID: t.session, PointID: turn.point.ID, Limit: turnPage}
		return func() tea.Msg {
			var r protocol.SessionDiffResult
			m.err = t.call("session/diff", params, &r)
			m.files = r.Data
			return m
		}
	}
	return nil
}

// knowFiles takes the files of a turn, and reads those of the next one.
func (t *turnList) knowFiles(m filesMsg) tea.Cmd {
	if turn := t.turn(m.of); turn != nil {
		turn.files = m.files
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
		entries = append(entries, picker.Entry{ID: string(turn.id), Title: turn.title(), Detail: turn.detail(), Words: turn.input().Text()})
	}
	t.list.Set(entries)
}

// input returns what people sent to a turn, as it is typed: its inputs, one below the other.
func (turn *listedTurn) input() prompt.Draft {
	var texts []string
	var files []*protocol.Attachment
	for i := range turn.items {
		item := &turn.items[i]
		switch {
		case item.Kind != protocol.ItemUserMessage:
		case item.Attachment != nil:
			files = append(files, item.Attachment)
		case item.Text != "":
			texts = append(texts, item.Text)
		}
	}
	return prompt.DraftWith(strings.Join(texts, "\n"), files)
}

// title returns the first words of a turn: of its input or, if another program began it, of its first item.
func (turn *listedTurn) title() string {
	for _, item := range turn.items {
		if item.Kind == protocol.ItemUserMessage && item.Text != "" {
			return item.Text
		}
	}
	return cmp.Or(termtext.OneLine(turn.items[0].Text, 200), string(turn.items[0].Kind))
}

// detail describes a turn on a line: its age, and the files that it changed.
func (turn *listedTurn) detail() string {
	line := faint.Render(ago(turn.items[0].AtMs))
	if turn.point == nil {
		return line
	}
	line += faint.Render(" · ") + counted(turn.point.Files, "file")
	if added, removed := lineCounts(turn.files); added+removed > 0 {
		line += " " + good.Render(fmt.Sprint("+", added)) + " " + bad.Render(fmt.Sprint("-", removed))
	}
	if turn.point.Undone {
		line += faint.Render(" · ") + asking.Render("undone")
	}
	return line
}

// lineCounts returns the lines that were added and removed in files.
func lineCounts(files []protocol.FileDiff) (added, removed int) {
	for i := range files {
		added, removed = added+files[i].Added, removed+files[i].Removed
	}
	return added, removed
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
		return turn.brief(style, height)
	})
	if t.fault != "" {
		rows[len(rows)-1] = bad.Render("✗ ") + termtext.OneLine(t.fault, 400)
	}
	return rows, x, y
}

// brief renders a turn beside the list: its files, and the end of what was said.
func (turn *listedTurn) brief(style markdown.Style, height int) (lines []string) {
	for i := range turn.files {
		if i == height/3 {
			lines = append(lines, faint.Render(fmt.Sprintf("  … %d more files", len(turn.files)-i)))
			break
		}
		lines = append(lines, changedFile(&turn.files[i], style.Width))
	}
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	return append(lines, lastMessages(turn.items, style, style.Width, max(height-len(lines), 1))...)
}

// changedFile describes the change of a file on a line.
func changedFile(f *protocol.FileDiff, width int) string {
	line := fmt.Sprintf("%s %s", f.Effect, termtext.OneLine(f.Path, max(width-24, 10)))
	if f.Added+f.Removed > 0 {
		line += " " + good.Render(fmt.Sprint("+", f.Added)) + " " + bad.Render(fmt.Sprint("-", f.Removed))
	}
	return line
}
