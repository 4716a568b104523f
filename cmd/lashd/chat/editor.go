package chat

import (
	"slices"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"

	"lashd/internal/termtext"
)

// editor is the text that a person enters, of one line or several, and what was entered before.
type editor struct {
	text []rune
	at   int // where the next character goes

	history []string
	place   int // in history; its length: what is being entered
	draft   string
}

func (e *editor) value() string { return string(e.text) }

func (e *editor) set(text string) {
	e.text = []rune(text)
	e.at = len(e.text)
}

// take gives the text, and is empty after it.
func (e *editor) take() string {
	text := strings.TrimSpace(e.value())
	e.set("")
	if text != "" && (len(e.history) == 0 || e.history[len(e.history)-1] != text) {
		e.history = append(e.history, text)
	}
	e.place = len(e.history)
	return text
}

// insert puts in what a terminal may be shown.
func (e *editor) insert(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	in := []rune(termtext.Printable(text))
	e.text = slices.Insert(e.text, e.at, in...)
	e.at += len(in)
}

// key does what a key means, and tells whether it means something.
func (e *editor) key(name string) bool {
	do, ok := edits[name]
	if ok {
		do(e)
	}
	return ok
}

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

func (e *editor) cut(from, to int) {
	e.text = slices.Delete(e.text, from, to)
	e.at = from
}

func (e *editor) lineStart() int {
	at := e.at
	for at > 0 && e.text[at-1] != '\n' {
		at--
	}
	return at
}

func (e *editor) lineEnd() int {
	at := e.at
	for at < len(e.text) && e.text[at] != '\n' {
		at++
	}
	return at
}

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

// up goes to the line before, and from the first one to what was entered before.
func (e *editor) up() {
	if start := e.lineStart(); start > 0 {
		column := e.at - start
		e.at = start - 1
		e.at = min(e.lineStart()+column, e.at)
		return
	}
	e.recall(e.place - 1)
}

func (e *editor) down() {
	if end := e.lineEnd(); end < len(e.text) {
		column := e.at - e.lineStart()
		e.at = end + 1
		e.at = min(e.at+column, e.lineEnd())
		return
	}
	e.recall(e.place + 1)
}

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

// lines are the text as it stands within a width, and where in it the cursor is.
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
