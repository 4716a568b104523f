package chat

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/cmd/lash/picker"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Limits of the session picker: the sessions and inputs of a page of the daemon, the items of a
// preview, the letters of each of them, and the sessions of a search.
const (
	sessionPage   = 200
	inputPage     = 500
	previewItems  = 40
	previewText   = 3000
	foundSessions = 100
)

// previewPause is how long a session is marked before its preview is read, so that a key that is held
// down reads none. searchPause is the same for words and the search of messages. While the daemon makes its index, the picker
// searches again every indexPause.
const (
	previewPause = 60 * time.Millisecond
	searchPause  = 150 * time.Millisecond
	indexPause   = time.Second
)

// sessionPicker finds a session by its title and its messages. Titles and inputs are found at once, other messages by the
// search of the daemon.
type sessionPicker struct {
	call func(method string, params, result any) error
	take func(protocol.SessionID) tea.Cmd // opens a session
	now  protocol.SessionID               // the session behind the picker; "": none
	cwd  string                           // of the sessions that are listed first

	list       picker.List
	everywhere bool // sessions of all directories are listed
	round      int  // counts the listings; answers of earlier ones do not count
	loading    bool
	sessions   []protocol.Session
	inputs     map[protocol.SessionID]string // the newest inputs of each session, then older ones
	first      map[protocol.SessionID]string // the oldest of them
	previews   map[protocol.SessionID]preview
	wanted     protocol.SessionID // the session whose preview is read next
	asked      string             // the words that the daemon was asked for last
	found      found
}

// found has the sessions with a message that has words, and the part of it that matches.
type found struct {
	words    string
	snippets map[protocol.SessionID]string
	pending  bool // the daemon has not indexed all messages yet
}

// preview has the newest items of a session.
type preview struct {
	items []protocol.Item
	err   error
}

// The messages of the picker.
type (
	sessionsMsg struct {
		round int
		page  protocol.SessionListResult
		err   error
	}
	inputsMsg struct {
		round int
		page  protocol.SessionInputsResult
		err   error
	}
	searchDueMsg  struct{ words string }
	foundMsg      struct{ found }
	previewDueMsg struct{ of protocol.SessionID }
	previewMsg    struct {
		of protocol.SessionID
		preview
	}
)

// newSessionPicker returns a picker for the sessions of a directory, and its first command. take opens the session that a
// person takes.
func newSessionPicker(call func(method string, params, result any) error, cwd string, now protocol.SessionID, take func(protocol.SessionID) tea.Cmd) (*sessionPicker, tea.Cmd) {
	p := &sessionPicker{call: call, take: take, now: now, cwd: cwd, previews: map[protocol.SessionID]preview{}}
	p.list.Typing, p.list.Asks = true, "type words of a title or a message"
	return p, p.load()
}

// load lists the sessions again, newest first.
func (p *sessionPicker) load() tea.Cmd {
	p.round++
	p.loading, p.sessions, p.wanted, p.asked, p.found = true, nil, "", "", found{}
	p.inputs, p.first = map[protocol.SessionID]string{}, map[protocol.SessionID]string{}
	p.fill()
	return tea.Batch(p.readSessions(""), p.readInputs(""))
}

// where returns the directory whose sessions are listed; "" means all.
func (p *sessionPicker) where() string {
	if p.everywhere {
		return ""
	}
	return p.cwd
}

// readSessions returns a command that reads a page of sessions.
func (p *sessionPicker) readSessions(cursor string) tea.Cmd {
	m, params := sessionsMsg{round: p.round}, protocol.SessionListParams{Cwd: p.where(), Cursor: cursor, Limit: sessionPage}
	return func() tea.Msg {
		m.err = p.call("session/list", params, &m.page)
		return m
	}
}

// readInputs returns a command that reads a page of inputs.
func (p *sessionPicker) readInputs(cursor string) tea.Cmd {
	m, params := inputsMsg{round: p.round}, protocol.SessionInputsParams{Cwd: p.where(), Cursor: cursor, Limit: inputPage}
	return func() tea.Msg {
		m.err = p.call("session/inputs", params, &m.page)
		return m
	}
}

// update implements overlay.
func (p *sessionPicker) update(msg tea.Msg) (cmd tea.Cmd, open bool) {
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		if cmd, open = p.key(m); !open {
			return cmd, false
		}
	case tea.PasteMsg:
		p.list.Paste(m.Content)
	case sessionsMsg:
		cmd = p.listed(m)
	case inputsMsg:
		cmd = p.remember(m)
	case searchDueMsg:
		cmd = p.search(m.words)
	case foundMsg:
		cmd = p.know(m)
	case previewDueMsg:
		cmd = p.readPreview(m.of)
	case previewMsg:
		p.previews[m.of] = m.preview
	}
	return tea.Batch(cmd, p.follow(), p.followWords()), true
}

// followWords makes the search of messages follow the filter.
func (p *sessionPicker) followWords() tea.Cmd {
	words := strings.TrimSpace(p.list.Filter())
	if words == p.asked {
		return nil
	}
	p.asked = words
	if words == "" {
		return nil
	}
	return tea.Tick(searchPause, func(time.Time) tea.Msg { return searchDueMsg{words} })
}

// search returns a command that finds the sessions with a message that has these words, if they are still those of the filter.
// A search that fails finds nothing: titles and inputs are found without it.
func (p *sessionPicker) search(words string) tea.Cmd {
	if words != p.asked {
		return nil
	}
	params := protocol.SessionSearchParams{Query: words, Cwd: p.where(), Distinct: true, Limit: foundSessions}
	return func() tea.Msg {
		var r protocol.SessionSearchResult
		m := found{words: words, snippets: map[protocol.SessionID]string{}}
		if err := p.call("session/search", params, &r); err != nil {
			return foundMsg{m}
		}
		for _, match := range r.Data {
			m.snippets[match.SessionID] = match.Snippet
		}
		m.pending = r.Pending > 0
		return foundMsg{m}
	}
}

// know takes the sessions that were found.
func (p *sessionPicker) know(m foundMsg) tea.Cmd {
	if m.words != p.asked {
		return nil
	}
	p.found = m.found
	p.fill()
	if !m.pending {
		return nil
	}
	return tea.Tick(indexPause, func(time.Time) tea.Msg { return searchDueMsg{m.words} })
}

// key handles a key press.
func (p *sessionPicker) key(m tea.KeyPressMsg) (cmd tea.Cmd, open bool) {
	switch m.String() {
	case "esc", "ctrl+c":
		return nil, false
	case "enter":
		if e, ok := p.list.Marked(); ok {
			return p.take(protocol.SessionID(e.ID)), false
		}
	case "tab":
		p.everywhere = !p.everywhere
		return p.load(), true
	default:
		p.list.Key(m)
	}
	return nil, true
}

// listed takes a page of sessions, and reads the next one.
func (p *sessionPicker) listed(m sessionsMsg) tea.Cmd {
	if m.round != p.round {
		return nil
	}
	p.sessions = append(p.sessions, m.page.Data...)
	p.loading = m.err == nil && m.page.NextCursor != ""
	p.fill()
	if m.err != nil {
		p.list.Empty = m.err.Error()
	}
	if !p.loading {
		return nil
	}
	return p.readSessions(m.page.NextCursor)
}

// remember takes a page of inputs, which come newest first, and reads the next one. Without inputs the
// filter finds titles only.
func (p *sessionPicker) remember(m inputsMsg) tea.Cmd {
	if m.round != p.round || m.err != nil {
		return nil
	}
	for _, in := range m.page.Data {
		text := termtext.OneLine(in.Text, 300)
		p.first[in.SessionID] = text
		if len(p.inputs[in.SessionID]) < previewText {
			p.inputs[in.SessionID] += "\n" + text
		}
	}
	p.fill()
	if m.page.NextCursor == "" {
		return nil
	}
	return p.readInputs(m.page.NextCursor)
}

// fill puts the sessions into the list. A session without a title has its first input.
func (p *sessionPicker) fill() {
	p.list.Head, p.list.Empty = "Sessions of "+shortened(p.cwd), "No session has these words."
	if p.everywhere {
		p.list.Head = "Sessions of all directories"
	}
	switch {
	case p.loading:
		p.list.Head, p.list.Empty = p.list.Head+" (reading…)", "Reading the sessions…"
	case len(p.sessions) == 0:
		p.list.Empty = "There are no sessions."
	case p.found.pending && p.found.words == p.asked:
		p.list.Head += " (indexing messages…)"
	}
	p.list.Keys = "Enter opens · Tab lists all directories · Esc goes back"
	if p.everywhere {
		p.list.Keys = "Enter opens · Tab lists this directory · Esc goes back"
	}
	entries := make([]picker.Entry, 0, len(p.sessions))
	for i := range p.sessions {
		s := &p.sessions[i]
		title := cmp.Or(s.Title, p.first[s.ID], "without a title")
		e := picker.Entry{ID: string(s.ID), Title: title, Detail: p.detail(s), Words: p.first[s.ID] + p.inputs[s.ID] + "\n" + s.Cwd}
		if snippet, ok := p.found.snippets[s.ID]; ok {
			e.Words += "\n" + p.found.words
			e.Detail = stateOf(s.State) + faint.Render(" · “"+termtext.OneLine(snippet, 120)+"”")
		}
		entries = append(entries, e)
	}
	p.list.Set(entries)
}

// detail describes a session on a line.
func (p *sessionPicker) detail(s *protocol.Session) string {
	parts := []string{ago(s.UpdatedAtMs), counted(int(s.TurnIndex), "turn")}
	if s.Usage.Cost > 0 {
		parts = append(parts, Dollars(s.Usage.Cost))
	}
	if s.ID == p.now {
		parts = append(parts, "open here")
	}
	if p.everywhere {
		parts = append(parts, shortened(s.Cwd))
	}
	return stateOf(s.State) + faint.Render(" · "+strings.Join(parts, " · "))
}

// stateOf names the state of a session.
func stateOf(s protocol.SessionState) string {
	switch s {
	case protocol.SessionRunning:
		return good.Render("running")
	case protocol.SessionRequiresAction:
		return asking.Render("waiting for you")
	}
	return faint.Render("idle")
}

// shortened returns the end of a path: its last directory and the one above.
func shortened(path string) string {
	dir, name := filepath.Split(filepath.Clean(path))
	return termtext.OneLine(filepath.Join(filepath.Base(dir), name), 60)
}

// follow makes the preview follow the mark.
func (p *sessionPicker) follow() tea.Cmd {
	e, _ := p.list.Marked()
	id := protocol.SessionID(e.ID)
	if _, known := p.previews[id]; id == "" || known || id == p.wanted {
		return nil
	}
	p.wanted = id
	return tea.Tick(previewPause, func(time.Time) tea.Msg { return previewDueMsg{id} })
}

// readPreview returns a command that reads the newest items of a session, if it is still marked.
func (p *sessionPicker) readPreview(id protocol.SessionID) tea.Cmd {
	if id != p.wanted {
		return nil
	}
	return func() tea.Msg {
		var r protocol.SessionReadResult
		err := p.call("session/read", protocol.SessionReadParams{SessionID: id, Limit: previewItems}, &r)
		return previewMsg{id, preview{r.Data, err}}
	}
}

// view implements overlay.
func (p *sessionPicker) view(style markdown.Style, height int) (rows []string, x, y int) {
	return p.list.View(style.Width, height, func(width, height int) []string {
		e, ok := p.list.Marked()
		if !ok {
			return nil
		}
		shown, known := p.previews[protocol.SessionID(e.ID)]
		switch {
		case !known:
			return []string{faint.Render("reading…")}
		case shown.err != nil:
			return []string{bad.Render("✗ ") + ansi.Truncate(termtext.OneLine(shown.err.Error(), 300), width-2, "…")}
		}
		return lastMessages(shown.items, style, width, height)
	})
}

// lastMessages renders the newest messages and calls on at most height lines.
func lastMessages(items []protocol.Item, style markdown.Style, width, height int) (lines []string) {
	style.Width = width
	for _, item := range slices.Backward(items) {
		shown := itemInBrief(item, style)
		if len(lines) > 0 && len(shown) > 0 && item.Kind != protocol.ItemToolCall {
			shown = append(shown, "")
		}
		if lines = append(shown, lines...); len(lines) >= height {
			break
		}
	}
	if len(lines) == 0 {
		return []string{faint.Render("This session has no messages.")}
	}
	return lines[max(0, len(lines)-height):]
}

// itemInBrief renders the end of a message, or a call on one line.
func itemInBrief(item protocol.Item, style markdown.Style) (rows []string) {
	switch item.Kind {
	case protocol.ItemReasoning:
		return nil
	case protocol.ItemToolCall, protocol.ItemCodeCell:
		return []string{faint.Render("· " + ansi.Truncate(callLine(&item, item.Status, style.Width), max(style.Width-2, 1), "…"))}
	}
	item.Text = last(item.Text, previewText)
	for l := range strings.SplitSeq(entry{item: &item}.shown(style), "\n") {
		rows = append(rows, wrapped(l, style.Width)...)
	}
	return rows
}

// wrapped breaks a line between words.
func wrapped(line string, width int) []string {
	return broken(ansi.Wordwrap(line, max(width, 1), ""), max(width, 1))
}

// openSessions opens the session picker.
func openSessions(u *ui, _ string) tea.Cmd {
	call := func(method string, params, result any) error { return u.session.Call(u.ctx, method, params, result) }
	p, first := newSessionPicker(call, u.talk.session.Cwd, u.talk.session.ID, func(id protocol.SessionID) tea.Cmd {
		if id == u.talk.session.ID {
			return nil
		}
		return switchTo(u, id)
	})
	return openOverlay(u, p, first)
}
