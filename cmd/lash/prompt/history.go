package prompt

import (
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// Draft is a text with its blocks, as the user left it. It is never changed. The
// zero value is empty.
type Draft struct{ text text }

// DraftOf returns a draft of a plain text.
func DraftOf(text string) Draft { return Draft{parse(text)} }

// DraftWith returns a draft of a message that was sent: its text, in which files are named, and the
// files.
func DraftWith(text string, files []*protocol.Attachment) Draft {
	var e Editor
	e.Set(text)
	for _, f := range files {
		if b := (&Block{file: f}); !e.restore(b.sent(), b) {
			e.at = e.text.end()
			e.Attach(f)
		}
	}
	return e.Draft()
}

// Text returns the text of a draft, as Editor.Text does.
func (d Draft) Text() string { return d.text.write((*Block).sent) }

// Files returns the files of a draft.
func (d Draft) Files() (all []*protocol.Attachment) {
	for _, b := range d.text.blocks() {
		if b.file != nil {
			all = append(all, b.file)
		}
	}
	return all
}

// BeginsWithBlock reports whether a draft begins with a pasted text or a file. It is
// then no command, whatever its first character is.
func (d Draft) BeginsWithBlock() bool {
	return len(d.text) > 0 && len(d.text[0].cells) > 0 && d.text[0].cells[0].block != nil
}

// Earlier is an input of the history.
type Earlier struct {
	// Text is the text that was sent.
	Text  string
	draft Draft // as it was typed; empty for an input of another session
}

// Draft returns an earlier input for the prompt. A long text is one block. A slash at its
// beginning is escaped, because a message was sent with it.
func (p Earlier) Draft() Draft {
	if len(p.draft.text) > 0 {
		return p.draft
	}
	var e Editor
	if e.Paste(p.Text); strings.HasPrefix(p.Text, "/") && !e.Draft().BeginsWithBlock() {
		e.Set("/" + p.Text)
	}
	return e.Draft()
}

// history holds earlier inputs, the oldest first, and which of them is shown.
type history struct {
	past    []Earlier
	place   int   // index of the shown one; len(past) means the new input
	current Draft // the new input while an earlier one is shown
}

// add adds an input as the newest one, and returns to the new input. A repeated
// input is added once.
func (h *history) add(d Draft) {
	text := d.Text()
	if text != "" && (len(h.past) == 0 || h.past[len(h.past)-1].Text != text) {
		h.past = append(h.past, Earlier{text, d})
	}
	h.place, h.current = len(h.past), Draft{}
}

// forget removes the newest input.
func (h *history) forget() {
	h.past = h.past[:max(0, len(h.past)-1)]
	h.place = len(h.past)
}

// Remember adds inputs that were sent before, the newest first. They come before
// all others. A text that the history has is not added.
func (e *Editor) Remember(texts []string) {
	h := &e.past
	known := map[string]bool{"": true}
	for _, p := range h.past {
		known[p.Text] = true
	}
	var older []Earlier
	for _, text := range slices.Backward(texts) {
		if !known[text] {
			known[text] = true
			older = append(older, Earlier{Text: text})
		}
	}
	h.past, h.place = append(older, h.past...), h.place+len(older)
}

// Search returns the earlier inputs that contain all words of a query, the newest first
// and each once, at most most of them. Case does not count.
func (e *Editor) Search(query string, most int) (found []Earlier) {
	words := strings.Fields(strings.ToLower(query))
	seen := map[string]bool{}
	for _, p := range slices.Backward(e.past.past) {
		folded := strings.ToLower(p.Text)
		has := func(word string) bool { return strings.Contains(folded, word) }
		if len(found) == most {
			break
		}
		if !seen[p.Text] && !slices.ContainsFunc(words, func(w string) bool { return !has(w) }) {
			seen[p.Text] = true
			found = append(found, p)
		}
	}
	return found
}

// move returns the input that is by places newer than the shown one, if there is
// one. now is the text in the editor: the new input is kept to return to, and
// changes of an earlier one are lost.
func (h *history) move(by int, now Draft) (d Draft, ok bool) {
	to := h.place + by
	if to < 0 || to > len(h.past) {
		return Draft{}, false
	}
	if h.place == len(h.past) {
		h.current = now
	}
	if h.place = to; to == len(h.past) {
		return h.current, true
	}
	return h.past[to].Draft(), true
}

// Draft returns the text with its blocks.
func (e *Editor) Draft() Draft { return Draft{e.text} }

// SetDraft replaces the text and moves the cursor to its end. It can be undone.
func (e *Editor) SetDraft(d Draft) {
	if len(d.text) == 0 {
		d = DraftOf("")
	}
	e.setText(d.text)
}

// Prepend puts a draft on lines of its own above the text, and leaves the cursor where it is in
// that. It can be undone.
func (e *Editor) Prepend(d Draft) {
	if e.Empty() {
		e.SetDraft(d)
		return
	}
	at := pos{e.at.line + len(d.text), e.at.cell}
	e.replace(pos{}, pos{}, d.text.followed(text{{}, {}}), other)
	e.at = at
}

// Take returns the text without the white space around it, adds it to the history
// and clears the editor, also for undo.
func (e *Editor) Take() Draft {
	e.ready()
	d := Draft{e.text.trimmed()}
	e.past.add(d)
	e.text, e.at, e.edits = nil, pos{}, edits{}
	return d
}

// Forget removes the newest input from the history.
func (e *Editor) Forget() { e.past.forget() }

// recall shows an earlier input, or a newer one.
func (e *Editor) recall(by int) {
	d, ok := e.past.move(by, e.Draft())
	if !ok {
		return
	}
	if e.SetDraft(d); by < 0 {
		e.at = e.text.lineEnd(pos{}) // so that the next up recalls, too
	}
}
