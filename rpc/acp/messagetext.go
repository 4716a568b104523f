package acp

import (
	"bytes"

	"lashd/rpc/protocol"
)

// text is what an editor was shown of a message that comes in pieces. An editor cannot take back what it has shown, so a message
// that begins again is shown only from where it is another one.
type text struct {
	kind  protocol.ItemKind
	shown []byte
	at    int // how far the message is: up to here it is as it was shown
	again int // how often it has become another one
}

// restart says that the message comes from its beginning.
func (t *text) restart() { t.at = 0 }

// piece takes a part of the message and returns what is to be shown of it. anew says that it begins another message.
func (t *text) piece(offset int, part string) (more string, anew bool) {
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
	t.again++
	return string(t.shown), true
}

// whole takes the message as it has become.
func (t *text) whole(all string) (more string, anew bool) {
	t.restart()
	more, anew = t.piece(0, all)
	if anew || t.at == len(t.shown) {
		return more, anew
	}
	t.shown, t.again = []byte(all), t.again+1 // more was shown than there is
	return all, true
}
