package prompt

import (
	"slices"
	"strings"
)

// Before returns the text of the cursor's line before the cursor, in which a block is a
// zero byte. alone reports that there is no other text.
func (e *Editor) Before() (before string, alone bool) {
	e.ready()
	cells := e.text[e.at.line].cells
	return written(cells[:e.at.cell]), len(e.text) == 1 && e.at.cell == len(cells)
}

// After returns the text of the cursor's line after the cursor, in which a block is a zero byte.
func (e *Editor) After() string {
	e.ready()
	return written(e.text[e.at.line].cells[e.at.cell:])
}

// written returns the text of cells, in which a block is a zero byte.
func written(cells []cell) string {
	var b strings.Builder
	for _, c := range cells {
		if c.block != nil {
			b.WriteByte(0)
		}
		b.WriteString(c.text)
	}
	return b.String()
}

// Complete replaces the last n bytes of Before and the first m bytes of After by a text. It can be undone.
func (e *Editor) Complete(n, m int, text string) {
	e.ready()
	cells := e.text[e.at.line].cells
	from := boundary(cells[:e.at.cell], max(offset(cells[:e.at.cell], e.at.cell)-n, 0))
	to := e.at.cell + boundary(cells[e.at.cell:], m)
	e.replace(pos{e.at.line, from}, pos{e.at.line, to}, parse(text), other)
}

// Choice is an entry of a Menu.
type Choice struct {
	Text string // shown first
	Says string // explains it; may be ""
	Path bool   // Text is a path, whose end says most: a long one is cut at its beginning
}

// Menu is a list of choices that is shown below the prompt while the user types. The
// zero value has none and is closed.
type Menu struct {
	choices []Choice
	at      int // the marked choice; -1: none
	top     int // the first choice on the screen
}

// MenuOf returns a menu with the choice at marked, or with none if that is -1.
func MenuOf(choices []Choice, at int) Menu { return Menu{choices: choices, at: at} }

// Open reports whether the menu has choices.
func (m *Menu) Open() bool { return len(m.choices) > 0 }

// Marked returns the marked choice, if there is one.
func (m *Menu) Marked() (c Choice, ok bool) {
	if m.at < 0 || m.at >= len(m.choices) {
		return Choice{}, false
	}
	return m.choices[m.at], true
}

// At returns the index of the marked choice; -1: none is marked.
func (m *Menu) At() int { return m.at }

// Move marks the choice that is by places below the marked one. After the last one
// comes the first.
func (m *Menu) Move(by int) {
	if n := len(m.choices); n > 0 {
		m.at = (max(m.at+by, -1) + n) % n
	}
}

// Lines returns the choices around the marked one, on at most height lines of at most
// width columns. If there are more, the last line says how many.
func (m *Menu) Lines(width, height int) []string {
	room := min(len(m.choices), height)
	if len(m.choices) > height && height > 2 {
		room = height - 1
	}
	if room < 1 {
		return nil
	}
	m.top = min(max(m.top, m.at-room+1), max(m.at, 0), len(m.choices)-room)
	shown := m.choices[m.top : m.top+room]
	column := 0
	for _, c := range shown {
		column = max(column, columnsOf(c.Text))
	}
	var lines []string
	for i, c := range shown {
		lines = append(lines, c.line(width, min(column, max(width/2, 12)), m.top+i == m.at))
	}
	if more := len(m.choices) - room; more > 0 && height > 2 {
		lines = append(lines, faint.Render("  … "+thousands(more)+" more"))
	}
	return slices.Clip(lines)
}
