package acp

import (
	"bytes"

	"lashd/rpc/protocol"
)

// text tracks how much of a message the editor has been shown. A model call that
// is retried streams its message again, perhaps with other words. Editors cannot
// remove text, so a repeated prefix is skipped. At the first difference the
// message is shown again as a whole, with another message id.
type text struct {
	kind     protocol.ItemKind
	shown    []byte // shown to the editor
	at       int    // length of the current attempt so far; shown[:at] equals it
	restarts int    // times that the message was shown again from its beginning
}

// restart notes that the message streams again from its beginning.
func (t *text) restart() { t.at = 0 }

// piece takes a piece of the message, at a byte offset, and returns the text to
// show. If restarted is true, that text is the message so far, to be shown as a
// new message. A piece after a gap is ignored: whole brings the rest.
func (t *text) piece(offset int, part string) (more string, restarted bool) {
	if offset > t.at {
		return "", false // a part is missing; the whole message will have it
	}
	skip := min(t.at-offset, len(part))
	part = part[skip:]
	known := t.shown[t.at:]
	switch {
	case bytes.HasPrefix(known, []byte(part)):
		t.at += len(part)
		return "", false
	case bytes.HasPrefix([]byte(part), known):
		more = part[len(known):]
		t.shown = append(t.shown, more...)
		t.at = len(t.shown)
		return more, false
	}
	t.shown = append(t.shown[:t.at:t.at], part...)
	t.at = len(t.shown)
	t.restarts++
	return string(t.shown), true
}

// whole takes the complete message and returns the text still to show, as piece
// does. It also restarts the message if the editor was shown more than the message
// has.
func (t *text) whole(all string) (more string, restarted bool) {
	t.restart()
	more, restarted = t.piece(0, all)
	if restarted || t.at == len(t.shown) {
		return more, restarted
	}
	t.shown, t.restarts = []byte(all), t.restarts+1 // the shown text is longer than the message
	return all, true
}
