// Package prompt is the input of a chat on a terminal: an editor, and the history
// of inputs. The chat gives it the names of keys as Bubble Tea spells them, and
// shows the lines that it returns. Nothing in this package writes to the terminal.
//
// All values of this package belong to one goroutine, the event loop of the chat.
package prompt

import (
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// Editor is a text of one or more lines with a cursor. The zero value is empty and
// ready to use. The cursor moves by grapheme clusters, so it never stands inside an
// emoji or between a letter and its accent.
type Editor struct {
	text  text // at least one line after ready
	at    pos  // the cursor is before this cell
	width int  // columns of a row, as in the last View; 0: not shown yet
	goal  int  // column that up and down aim for; it lasts while only they are used
	up    bool // the last key was up or down, so goal is valid

	edits  edits
	killed killed
	past   history
}

// ready makes the zero value usable.
func (e *Editor) ready() {
	if len(e.text) == 0 {
		e.text = text{{}}
	}
}

// Empty reports whether there is no text.
func (e *Editor) Empty() bool {
	return len(e.text) == 0 || len(e.text) == 1 && len(e.text[0].cells) == 0
}

// Text returns the text that would be sent. Pasted texts are whole, and a file is
// its name in brackets.
func (e *Editor) Text() string { return e.Draft().Text() }

// Files returns the attached files in their order.
func (e *Editor) Files() []*protocol.Attachment { return e.Draft().Files() }

// Set replaces the text and moves the cursor to its end. It can be undone.
func (e *Editor) Set(text string) { e.setText(parse(text)) }

// setText replaces the text.
func (e *Editor) setText(t text) {
	e.ready()
	e.replace(pos{}, e.text.end(), t, other)
}

// Insert adds typed text at the cursor.
func (e *Editor) Insert(text string) {
	e.ready()
	kind := typing
	if strings.TrimSpace(text) == "" && (e.at.cell == 0 || !e.text.spaceBefore(e.at)) {
		kind = other // each word can be undone
	}
	e.replace(e.at, e.at, parse(text), kind)
}

// Continue replaces a backslash before the cursor by a newline, and reports whether
// there was one. Enter calls it first, for terminals that send no other key for a
// newline.
func (e *Editor) Continue() bool {
	e.ready()
	cells := e.text[e.at.line].cells
	if e.at.cell == 0 || cells[e.at.cell-1].text != `\` {
		return false
	}
	e.replace(e.text.left(e.at), e.at, text{{}, {}}, other)
	return true
}

// replace puts a text in the place of another, and the cursor behind it. The lines
// of new are not changed, and at least one.
func (e *Editor) replace(from, to pos, new text, kind editKind) {
	e.ready()
	e.up, e.killed.growing = false, false
	lines, after := e.text.changed(from, to, new)
	d := edit{kind, from.line, slices.Clone(e.text[from.line : to.line+1]), lines, e.at, after}
	e.edits.add(d)
	e.apply(d)
}

// apply makes an edit.
func (e *Editor) apply(d edit) {
	e.text = slices.Replace(slices.Clone(e.text), d.at, d.at+len(d.old), d.new...)
	e.at = d.after
}

// undo takes back the newest edit.
func (e *Editor) undo() {
	if d, ok := e.edits.undo(); ok {
		e.apply(d)
	}
}

// redo repeats the edit that was undone last.
func (e *Editor) redo() {
	if d, ok := e.edits.redo(); ok {
		e.apply(d)
	}
}

// erase deletes the text between the cursor and a place.
func (e *Editor) erase(to pos) {
	from := e.at
	if to.before(from) {
		from, to = to, from
	}
	if from != to {
		e.replace(from, to, text{{}}, erasing)
	}
}

// kill deletes the text between the cursor and a place, and keeps it for yank.
func (e *Editor) kill(to pos) {
	from := e.at
	back := to.before(from)
	if back {
		from, to = to, from
	}
	if from == to {
		return
	}
	e.killed.add(e.text.between(from, to), back)
	e.replace(from, to, text{{}}, other)
}

// yank inserts the killed text.
func (e *Editor) yank() {
	if len(e.killed.text) > 0 {
		e.replace(e.at, e.at, e.killed.text, other)
	}
}

// rows returns the text as it was wrapped in the last View.
func (e *Editor) rows() rows {
	if e.width == 0 {
		return rows{e.text, 80}
	}
	return rows{e.text, e.width}
}

// View returns at most height rows around the cursor, each at most width columns
// wide, and the column and row of the cursor in them. There is always at least one
// row. Only the rows that it returns are wrapped, so the length of the text does
// not matter.
func (e *Editor) View(width, height int) (lines []string, x, y int) {
	e.ready()
	e.width = max(width-1, 1) // one column is for the cursor at the end of a row
	r := e.rows()
	x, _ = r.column(e.at)
	line, row, y := r.around(e.at, height)
	return r.shown(line, row, width, max(height, 1)), min(x, e.width), y
}
