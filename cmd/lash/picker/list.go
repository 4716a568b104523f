// Package picker shows a list on the whole screen, from which a person takes an entry. It filters
// the entries by words, and shows a preview of the marked one beside them.
//
// The list of Bubbles has pages in place of a mark that moves through all entries, ranks its
// entries, which here are in the order of time, and edits its filter by code point. A List is for
// the event loop only.
package picker

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
)

// Entry is an entry of a List. It has two lines.
type Entry struct {
	ID     string // identifies it
	Title  string // the first line, without styles
	Detail string // the second line; it may have styles
	Words  string // what the filter also finds
}

// List is a list of entries. The zero value has none.
type List struct {
	Head  string // names the list
	Keys  string // the line below it, which says what keys do
	Empty string // shown if there are no entries, or the filter leaves none
	Asks  string // shown in the empty filter
	// Typing says that the filter gets all keys that the list does not use.
	Typing bool

	entries []Entry
	folded  []string // what the filter finds in each entry, in lower case
	shown   []int    // the entries that the filter leaves
	at, top int      // the marked entry and the first one on the screen, in shown
	page    int      // the entries on the last screen
	filter  prompt.Editor
}

// Set replaces the entries. The mark stays at its entry if it is still there.
func (l *List) Set(entries []Entry) {
	marked, had := l.Marked()
	l.entries, l.folded = entries, make([]string, len(entries))
	for i, e := range entries {
		l.folded[i] = strings.ToLower(e.Title + "\n" + e.Words + "\n" + e.ID)
	}
	at := l.at
	l.fill()
	l.at = at
	if i := slices.IndexFunc(l.shown, func(i int) bool { return l.entries[i].ID == marked.ID }); had && i >= 0 {
		l.at = i
	}
	l.move(0)
}

// fill finds the entries that have all words of the filter.
func (l *List) fill() {
	words := strings.Fields(strings.ToLower(l.filter.Text()))
	l.shown, l.at, l.top = l.shown[:0], 0, 0
	for i, text := range l.folded {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			l.shown = append(l.shown, i)
		}
	}
}

// Filter returns what was typed into the filter.
func (l *List) Filter() string { return l.filter.Text() }

// ClearFilter empties the filter.
func (l *List) ClearFilter() {
	l.filter.Set("")
	l.fill()
}

// Marked returns the marked entry, if there is one.
func (l *List) Marked() (e Entry, ok bool) {
	if l.at >= len(l.shown) {
		return Entry{}, false
	}
	return l.entries[l.shown[l.at]], true
}

// move moves the mark.
func (l *List) move(by int) { l.at = max(0, min(l.at+by, len(l.shown)-1)) }

// Key handles a key press, and reports whether the list used it.
func (l *List) Key(m tea.KeyPressMsg) bool {
	switch name := m.String(); name {
	case "up", "ctrl+p":
		l.move(-1)
	case "down", "ctrl+n":
		l.move(1)
	case "pgup":
		l.move(-max(l.page, 1))
	case "pgdown":
		l.move(max(l.page, 1))
	case "home":
		l.move(-len(l.shown))
	case "end":
		l.move(len(l.shown))
	default:
		return l.Typing && l.types(name, m.Text)
	}
	return true
}

// types changes the filter, and reports whether the key did.
func (l *List) types(name, text string) bool {
	before := l.filter.Text()
	if used := l.filter.Key(name); !used && text == "" {
		return false
	} else if !used {
		l.filter.Insert(text)
	}
	if l.filter.Text() != before {
		l.fill()
	}
	return true
}

// Paste adds a pasted text to the filter.
func (l *List) Paste(text string) {
	if l.Typing {
		l.filter.Insert(strings.Join(strings.Fields(text), " "))
		l.fill()
	}
}
