package chat

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/cmd/lash/prompt"
)

// pager is the overlay that shows what the chat has printed, with every call unfolded.
// It renders an entry only when the screen needs it: a long session
// opens at once, which a viewport over all of its lines does not.
type pager struct {
	talk    *transcript
	entries []entry
	blocks  map[int][]string // rendered entries, for style
	style   markdown.Style
	height  int // rows of text
	top     place
	before  int            // the entries that the transcript had got from before the attach
	query   string         // what n and N look for, in lower case; "": nothing
	asking  *prompt.Editor // the words of a search while they are typed; nil: none are
	note    string         // replaces the line of keys until the next key
}

// place is a row of an entry.
type place struct{ entry, row int }

// before reports whether a is above b.
func (a place) before(b place) bool {
	return a.entry < b.entry || a.entry == b.entry && a.row < b.row
}

// openPager opens the transcript at its end.
func openPager(u *ui) tea.Cmd {
	if len(u.talk.finished) == 0 {
		return say("The transcript is empty.")
	}
	return openOverlay(u, newPager(u), readOlder(u))
}

// newPager returns a pager at the end of the transcript.
func newPager(u *ui) *pager {
	p := &pager{talk: u.talk, before: u.talk.preceded}
	p.fit(u.style, u.height)
	p.top = p.last()
	return p
}

// fit gives the pager the size of the terminal and the newest entries. At its end
// it follows them.
func (p *pager) fit(style markdown.Style, height int) {
	p.shift()
	atEnd := len(p.blocks) > 0 && !p.top.before(p.last())
	if p.blocks == nil || p.style.Width != style.Width || p.style.Theme != style.Theme {
		p.blocks, p.style, p.top.row = map[int][]string{}, style, 0
	}
	p.entries, p.height = p.talk.finished, max(height-1, 1)
	if atEnd || p.last().before(p.top) {
		p.top = p.last()
	}
}

// shift keeps the screen where it is after the transcript got entries from before the attach.
func (p *pager) shift() {
	n := p.talk.preceded - p.before
	if n == 0 {
		return
	}
	p.before += n
	moved := make(map[int][]string, len(p.blocks))
	for i, rows := range p.blocks {
		moved[i+n] = rows
	}
	p.blocks, p.top.entry, p.entries = moved, p.top.entry+n, p.talk.finished
}

// block returns the rows of an entry, with an empty one at the end.
func (p *pager) block(i int) []string {
	if rows, ok := p.blocks[i]; ok {
		return rows
	}
	var rows []string
	for _, l := range p.entries[i].unfolded(p.style) {
		rows = append(rows, broken(strings.ReplaceAll(l, "\t", "    "), max(p.style.Width, 1))...)
	}
	p.blocks[i] = append(rows, "")
	return p.blocks[i]
}

// last returns the place of the first row when the end is on the screen.
func (p *pager) last() place { return p.moved(place{len(p.entries), 0}, -p.height) }

// moved returns the place n rows below at, or above it if n is negative, within the
// transcript.
func (p *pager) moved(at place, n int) place {
	for n < 0 && at.row+n < 0 {
		if at.entry == 0 {
			return place{}
		}
		n += at.row
		at = place{at.entry - 1, len(p.block(at.entry - 1))}
	}
	for n > 0 && at.entry < len(p.entries) && at.row+n >= len(p.block(at.entry)) {
		n -= len(p.block(at.entry)) - at.row
		at = place{at.entry + 1, 0}
	}
	return place{at.entry, at.row + n}
}

// scroll moves the screen by n rows.
func (p *pager) scroll(n int) {
	p.top = p.moved(p.top, n)
	if end := p.last(); end.before(p.top) {
		p.top = end
	}
}

// update implements overlay.
func (p *pager) update(msg tea.Msg) (_ tea.Cmd, open bool) {
	p.shift()
	switch m := msg.(type) {
	case tea.PasteMsg:
		if p.asking != nil {
			p.asking.Insert(strings.Join(strings.Fields(m.Content), " "))
		}
	case tea.KeyPressMsg:
		p.note = ""
		if p.asking == nil {
			return nil, p.key(m.String())
		}
		p.searchKey(m)
	}
	return nil, true
}

// key handles a key press. It reports whether the pager stays open.
func (p *pager) key(name string) bool {
	page := max(p.height-2, 1)
	switch name {
	case "q", "esc", "ctrl+c", "ctrl+t":
		return false
	case "down", "j", "enter":
		p.scroll(1)
	case "up", "k":
		p.scroll(-1)
	case "pgdown", "space", "ctrl+f":
		p.scroll(page)
	case "pgup", "b", "ctrl+b":
		p.scroll(-page)
	case "d", "ctrl+d":
		p.scroll(page / 2)
	case "u", "ctrl+u":
		p.scroll(-page / 2)
	case "g", "home":
		p.top = place{}
	case "G", "shift+g", "end":
		p.top = p.last()
	case "/":
		p.asking = &prompt.Editor{}
	case "n":
		p.find(1)
	case "N", "shift+n":
		p.find(-1)
	}
	return true
}

// searchKey handles a key press while the words of a search are typed.
func (p *pager) searchKey(m tea.KeyPressMsg) {
	switch name := m.String(); name {
	case "esc", "ctrl+c":
		p.asking = nil
	case "enter":
		p.query, p.asking = strings.ToLower(p.asking.Text()), nil
		p.find(1)
	default:
		if !p.asking.Key(name) && m.Text != "" {
			p.asking.Insert(m.Text)
		}
	}
}

// find moves to the next row with the words of the search, or to the one before, and
// goes on at the other end of the transcript.
func (p *pager) find(by int) {
	if p.query == "" {
		p.note = "No search yet. / begins one."
		return
	}
	at := p.top
	for range len(p.entries) + 1 {
		if row, ok := p.match(at, by); ok {
			p.top = place{at.entry, row}
			p.scroll(0)
			p.note = ""
			return
		}
		at = place{(at.entry + by + len(p.entries)) % len(p.entries), -1}
		if by < 0 {
			at.row = 1 << 30
		}
	}
	p.note = "Not found: " + p.query
}

// match returns the first row of an entry beyond a place that has the words, in the
// direction by. An entry that cannot have them is not rendered.
func (p *pager) match(at place, by int) (int, bool) {
	if at.entry >= len(p.entries) || !strings.Contains(strings.ToLower(p.entries[at.entry].searched()), p.query) {
		return 0, false
	}
	rows := p.block(at.entry)
	for i := range rows {
		if by < 0 {
			i = len(rows) - 1 - i
		}
		beyond := i > at.row && by > 0 || i < at.row && by < 0
		if beyond && strings.Contains(strings.ToLower(ansi.Strip(rows[i])), p.query) {
			return i, true
		}
	}
	return 0, false
}

// view implements overlay. The cursor is hidden.
func (p *pager) view(style markdown.Style, height int) (rows []string, x, y int) {
	p.fit(style, height)
	for i := p.top.entry; i < len(p.entries) && len(rows) < p.height; i++ {
		block := p.block(i)
		if i == p.top.entry {
			block = block[min(p.top.row, len(block)):]
		}
		rows = append(rows, block...)
	}
	rows = rows[:min(len(rows), p.height)]
	for i := range rows {
		rows[i] = p.marked(rows[i])
	}
	rows = append(rows, slices.Repeat([]string{""}, p.height-len(rows))...)
	return append(rows, p.foot()), -1, 0
}

// marked returns a row with the words of the search reversed.
func (p *pager) marked(row string) string {
	bare := strings.ToLower(ansi.Strip(row))
	var ranges []lipgloss.Range
	for at := 0; p.query != ""; {
		i := strings.Index(bare[at:], p.query)
		if i < 0 {
			break
		}
		from := ansi.StringWidth(bare[:at+i])
		ranges = append(ranges, lipgloss.NewRange(from, from+ansi.StringWidth(p.query), lipgloss.NewStyle().Reverse(true)))
		at += i + len(p.query)
	}
	return lipgloss.StyleRanges(row, ranges...)
}

// foot returns the line of keys at the bottom, or what is typed there.
func (p *pager) foot() string {
	if p.asking != nil {
		return mine.Render("/") + p.asking.Text() + strong.Reverse(true).Render(" ") + faint.Render("  Enter searches, Esc goes back")
	}
	where := fmt.Sprintf("%d of %d", min(p.top.entry+1, len(p.entries)), len(p.entries))
	if !p.top.before(p.last()) {
		where = "end"
	}
	parts := []string{strong.Render("Transcript"), faint.Render(where)}
	if p.talk.reading {
		parts = append(parts, faint.Render("reading earlier messages"))
	}
	if p.note != "" {
		return faint.Render("─ ") + fitted(append(parts, asking.Render(p.note)), p.style.Width-2)
	}
	for _, key := range []string{"q closes", "PgUp PgDn g G", "/ searches", "n N next, previous"} {
		parts = append(parts, faint.Render(key))
	}
	return faint.Render("─ ") + fitted(parts, p.style.Width-2)
}
