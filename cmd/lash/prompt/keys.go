package prompt

// Key handles an editing key and reports whether name is one.
func (e *Editor) Key(name string) bool {
	do, ok := keys[name]
	if !ok {
		return false
	}
	e.ready()
	e.up = e.up && (name == "up" || name == "down" || name == "ctrl+p" || name == "ctrl+n")
	do(e)
	e.killed.growing = killing[name]
	return true
}

// IsKey reports whether name is an editing key.
func (e *Editor) IsKey(name string) bool {
	_, ok := keys[name]
	return ok
}

// killing has the keys that keep what they delete.
var killing = map[string]bool{"ctrl+w": true, "alt+backspace": true, "ctrl+backspace": true, "alt+d": true, "ctrl+delete": true, "alt+delete": true, "ctrl+u": true, "ctrl+k": true}

// keys maps key names to editing actions. They are the usual ones of Emacs and of
// shells. A terminal sends Ctrl-_ also for Ctrl-/.
var keys = map[string]func(*Editor){
	"left": moves(text.left), "ctrl+b": moves(text.left),
	"right": moves(text.right), "ctrl+f": moves(text.right),
	"home": rowMoves(rows.start), "end": rowMoves(rows.end),
	"ctrl+a": moves(text.lineStart), "ctrl+e": moves(text.lineEnd),
	"ctrl+home": moves(toStart), "alt+<": moves(toStart), "ctrl+end": moves(toEnd), "alt+>": moves(toEnd),
	"alt+left": moves(backWord), "alt+b": moves(backWord), "ctrl+left": moves(backWord),
	"alt+right": moves(forwardWord), "alt+f": moves(forwardWord), "ctrl+right": moves(forwardWord),
	"up": (*Editor).previous, "ctrl+p": (*Editor).previous, "down": (*Editor).next, "ctrl+n": (*Editor).next,

	"backspace": erases(text.left), "ctrl+h": erases(text.left), "shift+backspace": erases(text.left),
	"delete":        erases(text.right),
	"ctrl+w":        kills(backSpace),
	"alt+backspace": kills(backWord), "ctrl+backspace": kills(backWord),
	"alt+d": kills(forwardWord), "ctrl+delete": kills(forwardWord), "alt+delete": kills(forwardWord),
	"ctrl+u": kills(orNewline(text.lineStart, text.left)),
	"ctrl+k": kills(orNewline(text.lineEnd, text.right)),
	"ctrl+y": (*Editor).yank,
	"ctrl+_": (*Editor).undo, "ctrl+/": (*Editor).undo, "super+z": (*Editor).undo,
	"alt+_": (*Editor).redo, "alt+/": (*Editor).redo, "ctrl+shift+_": (*Editor).redo, "super+shift+z": (*Editor).redo,

	"ctrl+j": newline, "alt+enter": newline, "shift+enter": newline,
}

// place finds a place in a text from the place of the cursor.
type place func(text, pos) pos

// moves returns an action that moves the cursor to a place, erases one that deletes
// the text up to it, and kills one that keeps the deleted text for yank.
func moves(to place) func(*Editor)  { return func(e *Editor) { e.at = to(e.text, e.at) } }
func erases(to place) func(*Editor) { return func(e *Editor) { e.erase(to(e.text, e.at)) } }
func kills(to place) func(*Editor)  { return func(e *Editor) { e.kill(to(e.text, e.at)) } }

// rowMoves returns an action that moves the cursor to a place that depends on how
// the text is wrapped.
func rowMoves(to func(rows, pos) pos) func(*Editor) {
	return func(e *Editor) { e.at = to(e.rows(), e.at) }
}

func toStart(text, pos) pos         { return pos{} }
func toEnd(t text, _ pos) pos       { return t.end() }
func backWord(t text, p pos) pos    { return t.wordLeft(p, cell.word) }
func backSpace(t text, p pos) pos   { return t.wordLeft(p, notSpace) }
func forwardWord(t text, p pos) pos { return t.wordRight(p, cell.word) }
func newline(e *Editor)             { e.replace(e.at, e.at, text{{}, {}}, other) }

// orNewline returns the place to or, if the cursor is already there, the one beyond
// it: after the next newline.
func orNewline(to, beyond place) place {
	return func(t text, p pos) pos {
		if at := to(t, p); at != p {
			return at
		}
		return beyond(t, p)
	}
}

// previous moves the cursor to the previous row or, in the first row, shows the
// previous input of the history.
func (e *Editor) previous() { e.toRow(rows.above, -1) }

// next moves the cursor to the next row or, in the last row, shows the next input
// of the history.
func (e *Editor) next() { e.toRow(rows.below, +1) }

// toRow moves the cursor to another row or, if there is none, in the history.
func (e *Editor) toRow(to func(rows, pos, int) (pos, bool), by int) {
	if !e.up {
		e.goal, _ = e.rows().column(e.at)
	}
	at, ok := to(e.rows(), e.at, e.goal)
	if !ok {
		e.recall(by)
		return
	}
	e.at, e.up = at, true
}
