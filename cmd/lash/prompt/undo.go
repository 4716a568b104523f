package prompt

import "slices"

// edit is a change of a text: the lines from index at on.
type edit struct {
	kind          editKind
	at            int
	old, new      text
	before, after pos // of the cursor
}

// editKind says which edits are undone together: those of one kind that follow
// each other, except other ones.
type editKind int

const (
	other editKind = iota
	typing
	erasing
)

// reversed returns the edit that undoes d.
func (d edit) reversed() edit {
	d.old, d.new, d.before, d.after = d.new, d.old, d.after, d.before
	return d
}

// continues reports whether d goes on with an earlier edit, so that one undo takes
// back both: they are of one kind, in one line, and nothing happened between them.
func (d edit) continues(earlier edit) bool {
	return d.kind != other && d.kind == earlier.kind && d.before == earlier.after && d.at == earlier.at &&
		len(earlier.new) == 1 && len(d.old) == 1 && len(d.new) == 1
}

// edits remembers edits for undo and redo, the newest last.
type edits struct{ done, undone []edit }

// mostEdits is the number of edits that can be undone.
const mostEdits = 1000

// add remembers an edit. Edits that were undone before can no longer be repeated.
func (l *edits) add(d edit) {
	l.undone = nil
	if n := len(l.done); n > 0 && d.continues(l.done[n-1]) {
		l.done[n-1].new, l.done[n-1].after = d.new, d.after
		return
	}
	if l.done = append(l.done, d); len(l.done) > mostEdits {
		l.done = slices.Delete(l.done, 0, len(l.done)-mostEdits)
	}
}

// undo returns the edit that takes back the newest one, if there is one.
func (l *edits) undo() (d edit, ok bool) { return shift(&l.done, &l.undone) }

// redo returns the edit that repeats the one that was undone last, if there is one.
func (l *edits) redo() (d edit, ok bool) { return shift(&l.undone, &l.done) }

// shift moves the last edit to another list, reversed, and returns it.
func shift(from, to *[]edit) (edit, bool) {
	n := len(*from) - 1
	if n < 0 {
		return edit{}, false
	}
	d := (*from)[n].reversed()
	*from, *to = (*from)[:n], append(*to, d)
	return d, true
}
