package picker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// keys are the keys of the tests that are not letters.
var keys = map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace}

// press presses keys: those with a name, and the letters of other texts.
func press(l *List, names ...string) {
	for _, n := range names {
		if code, ok := keys[n]; ok {
			l.Key(tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range n {
			l.Key(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// numbered returns n entries.
func numbered(n int) (all []Entry) {
	for i := range n {
		all = append(all, Entry{ID: fmt.Sprint("id", i), Title: fmt.Sprint("title ", i), Detail: "details", Words: fmt.Sprint("Hidden", i%7)})
	}
	return all
}

// screen returns the rows of a list without styles and spaces at the ends.
func screen(l *List, width, height int, p Preview) string {
	rows, _, _ := l.View(width, height, p)
	for i, r := range rows {
		rows[i] = strings.TrimRight(ansi.Strip(r), " ")
	}
	return strings.Join(rows, "\n")
}

func TestKeysOfAList(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
	}{
		{nil, "id0"},
		{[]string{"down", "down", "up"}, "id1"},
		{[]string{"up"}, "id0"},
		{[]string{"end"}, "id99"},
		{[]string{"end", "down"}, "id99"},
		{[]string{"end", "home"}, "id0"},
		{[]string{"pgdown"}, "id3"},
		{[]string{"pgdown", "pgdown", "pgup"}, "id3"},
		{[]string{"title 42"}, "id42"},
		{[]string{"HIDDEN3"}, "id3"},
		{[]string{"hidden3 9"}, "id59"},
		{[]string{"down", "9", "backspace"}, "id0"},
		{[]string{"nothing"}, ""},
	} {
		l := &List{Typing: true}
		l.Set(numbered(100))
		screen(l, 60, 9, nil)
		press(l, c.keys...)
		if e, ok := l.Marked(); e.ID != c.want || ok != (c.want != "") {
			t.Errorf("part/12 picker: after %q, %q is marked, want %q", c.keys, e.ID, c.want)
		}
	}
}

func TestMarkStaysAtItsEntry(t *testing.T) {
	l := &List{Typing: true}
	l.Set(numbered(10))
	press(l, "down", "down")
	l.Set(append([]Entry{{ID: "new"}}, numbered(10)...))
	if e, _ := l.Marked(); e.ID != "id2" {
		t.Errorf("part/12 picker: %q is marked after an entry was added", e.ID)
	}
	l.Set(numbered(1))
	if e, _ := l.Marked(); e.ID != "id0" {
		t.Errorf("part/12 picker: %q is marked after entries were removed", e.ID)
	}
	l.Set(nil)
	if _, ok := l.Marked(); ok {
		t.Error("part/12 picker: an entry of an empty list is marked")
	}
}

func TestListIsAsWideAndHighAsTheScreen(t *testing.T) {
	entries := append(numbered(30), Entry{ID: "wide", Title: strings.Repeat("日本語👍 ", 40), Detail: strings.Repeat("long ", 40)})
	preview := func(width, height int) []string {
		return strings.Split(strings.TrimSuffix(strings.Repeat(strings.Repeat("p", width)+"\n", height), "\n"), "\n")
	}
	for _, typing := range []bool{true, false} {
		for width := 10; width < 130; width += 7 {
			for height := 4; height < 40; height += 5 {
				l := &List{Typing: typing, Head: strings.Repeat("head ", 10), Keys: strings.Repeat("keys ", 20), Asks: "words"}
				l.Set(entries)
				press(l, "end")
				rows, _, y := l.View(width, height, preview)
				if len(rows) != height || y >= height {
					t.Errorf("part/12 picker: %d rows at %dx%d, the cursor in row %d", len(rows), width, height, y)
				}
				for _, r := range rows {
					if w := ansi.StringWidth(r); w > width && !strings.Contains(r, "words") {
						t.Errorf("part/12 picker: a row of %d columns at %dx%d: %q", w, width, height, r)
					}
				}
			}
		}
	}
}

func TestPreviewNeedsRoom(t *testing.T) {
	for width, want := range map[int]bool{40: false, PreviewFrom - 1: false, PreviewFrom: true, 100: true} {
		l := &List{}
		l.Set(numbered(3))
		if got := strings.Contains(screen(l, width, 10, func(int, int) []string { return []string{"shown"} }), "shown"); got != want {
			t.Errorf("part/12 picker: with %d columns there is a preview: %t, want %t", width, got, want)
		}
	}
}

func TestTitlesCannotControlTheTerminal(t *testing.T) {
	l := &List{}
	l.Set([]Entry{{Title: "a\x1b]52;c;eA==\x07\nb"}})
	if rows, _, _ := l.View(60, 6, nil); strings.ContainsAny(strings.Join(rows, ""), "\a\n") || strings.Contains(strings.Join(rows, ""), "\x1b]") {
		t.Errorf("part/12 picker: %q", rows)
	}
}

func TestKeyInALongList(t *testing.T) {
	l := &List{Typing: true}
	l.Set(numbered(5000))
	const runs = 50
	began := time.Now()
	for range runs {
		press(l, "4", "backspace", "end")
		screen(l, 100, 30, nil)
	}
	if took := time.Since(began) / (3 * runs); took > 16*time.Millisecond {
		t.Errorf("part/12 picker: a key in a list of 5,000 takes %v", took)
	} else {
		t.Logf("a key in a list of 5,000 takes %v", took)
	}
}
