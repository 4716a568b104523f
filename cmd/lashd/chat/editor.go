package chat

import (
	"slices"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"

	"lashd/internal/termtext"
)

// editor is the input field: a text of one or more lines, and the history of
// earlier inputs. The zero value is an empty editor. The history lasts as long as
// the chat and includes slash commands.
type editor struct {
	text []rune
	at   int // position of the cursor in text

	history []string
	place   int    // index of the shown history entry; len(history) means the new input
	draft   string // the new input while a history entry is shown
}

func (e *editor) value() string { return string(e.text) }

// set replaces the text and moves the cursor to its end.
func (e *editor) set(text string) {
	e.text = []rune(text)
	e.at = len(e.text)
}

// take returns the trimmed text, adds it to the history and clears the editor. A
// repeated input is added once.
func (e *editor) take() string {
	text := strings.TrimSpace(e.value())
	e.set("")
	if text != "" && (len(e.history) == 0 || e.history[len(e.history)-1] != text) {
		e.history = append(e.history, text)
	}
	e.place = len(e.history)
	return text
}

// forget removes the newest input from the history.
func (e *editor) forget() {
	e.history = e.history[:max(0, len(e.history)-1)]
	e.place = len(e.history)
}

// insert adds text at the cursor. Control characters become visible escapes, so
// pasted text cannot send commands to the terminal.
func (e *editor) insert(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	in := []rune(termtext.Printable(text))
	e.text = slices.Insert(e.text, e.at, in...)
	e.at += len(in)
}

// key handles an editing key and reports whether name is one.
func (e *editor) key(name string) bool {
	do, ok := edits[name]
	if ok {
		do(e)
	}
	return ok
}

// edits maps key names, as Bubble Tea spells them, to editing actions. They are
// the usual Emacs keys.
var edits = map[string]func(*editor){
	"left": func(e *editor) { e.at = max(0, e.at-1) }, "ctrl+b": func(e *editor) { e.at = max(0, e.at-1) },
	"right": func(e *editor) { e.at = min(len(e.text), e.at+1) }, "ctrl+f": func(e *editor) { e.at = min(len(e.text), e.at+1) },
	"home": func(e *editor) { e.at = e.lineStart() }, "ctrl+a": func(e *editor) { e.at = e.lineStart() },
	"end": func(e *editor) { e.at = e.lineEnd() }, "ctrl+e": func(e *editor) { e.at = e.lineEnd() },
	"alt+left": func(e *editor) { e.at = e.wordStart() }, "alt+b": func(e *editor) { e.at = e.wordStart() },
	"alt+right": func(e *editor) { e.at = e.wordEnd() }, "alt+f": func(e *editor) { e.at = e.wordEnd() },
	"backspace": func(e *editor) { e.cut(max(0, e.at-1), e.at) }, "delete": func(e *editor) { e.cut(e.at, min(len(e.text), e.at+1)) },
	"ctrl+w": func(e *editor) { e.cut(e.wordStart(), e.at) }, "alt+backspace": func(e *editor) { e.cut(e.wordStart(), e.at) },
	"ctrl+u": func(e *editor) { e.cut(e.lineStart(), e.at) }, "ctrl+k": func(e *editor) { e.cut(e.at, e.lineEnd()) },
	"ctrl+j": func(e *editor) { e.insert("\n") }, "alt+enter": func(e *editor) { e.insert("\n") }, "shift+enter": func(e *editor) { e.insert("\n") },
	"up": (*editor).up, "down": (*editor).down,
}

// cut deletes the characters from from up to, but not including, to, and moves the
// cursor there.
func (e *editor) cut(from, to int) {
	e.text = slices.Delete(e.text, from, to)
	e.at = from
}

// lineStart returns the position of the start of the current line.
func (e *editor) lineStart() int {
	at := e.at
	for at > 0 && e.text[at-1] != '\n' {
		at--
	}
	return at
}

// lineEnd returns the position of the end of the current line.
func (e *editor) lineEnd() int {
	at := e.at
	for at < len(e.text) && e.text[at] != '\n' {
		at++
	}
	return at
}

// wordStart returns the position of the start of the word before the cursor.
func (e *editor) wordStart() int {
	at := e.at
	for at > 0 && unicode.IsSpace(e.text[at-1]) {
		at--
	}
	for at > 0 && !unicode.IsSpace(e.text[at-1]) {
		at--
	}
	return at
}

// wordEnd returns the position of the end of the word after the cursor.
func (e *editor) wordEnd() int {
	at := e.at
	for at < len(e.text) && unicode.IsSpace(e.text[at]) {
		at++
	}
	for at < len(e.text) && !unicode.IsSpace(e.text[at]) {
		at++
	}
	return at
}

// up moves the cursor to the previous line or, on the first line, shows the
// previous history entry.
func (e *editor) up() {
	if start := e.lineStart(); start > 0 {
		column := e.at - start
		e.at = start - 1
		e.at = min(e.lineStart()+column, e.at)
		return
	}
	e.recall(e.place - 1)
}

// down moves the cursor to the next line or, on the last line, shows the next
// history entry.
func (e *editor) down() {
	if end := e.lineEnd(); end < len(e.text) {
		column := e.at - e.lineStart()
		e.at = end + 1
		e.at = min(e.at+column, e.lineEnd())
		return
	}
	e.recall(e.place + 1)
}

// recall shows a history entry. It keeps the new input as the draft. Changes to an
// entry are lost when another one is shown.
func (e *editor) recall(place int) {
	if place < 0 || place > len(e.history) {
		return
	}
	if e.place == len(e.history) {
		e.draft = e.value()
	}
	if e.place = place; place == len(e.history) {
		e.set(e.draft)
	} else {
		e.set(e.history[place])
	}
}

// lines wraps the text to a width in columns and returns its lines and the column
// and row of the cursor. Wide characters take two columns. There is always at
// least one line.
func (e *editor) lines(width int) (all []string, x, y int) {
	line, used := "", 0
	for i, r := range append(slices.Clone(e.text), '\n') {
		wide := lipgloss.Width(string(r))
		if r != '\n' && used+wide > width {
			all, line, used = append(all, line), "", 0
		}
		if i == e.at {
			x, y = used, len(all)
		}
		if r == '\n' {
			all, line, used = append(all, line), "", 0
		} else {
			line, used = line+string(r), used+wide
		}
	}
	return all, x, y
}
