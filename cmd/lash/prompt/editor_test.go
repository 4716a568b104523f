package prompt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"
	"pgregory.net/rapid"

	"lashd/cmd/lash/prompt"
)

// reference is the simplest editor: a slice of grapheme clusters.
type reference struct {
	text []string
	at   int
}

func (r *reference) String() string { return strings.Join(r.text, "") }

// replace replaces the clusters between two indices, and splits the whole text into clusters again.
func (r *reference) replace(from, to int, text string) {
	head := strings.Join(r.text[:from], "") + text
	all := head + strings.Join(r.text[to:], "")
	r.text, r.at = nil, -1
	size := 0
	for next := graphemes.FromString(all); next.Next(); {
		if r.at < 0 && size >= len(head) {
			r.at = len(r.text)
		}
		r.text = append(r.text, next.Value())
		size += len(next.Value())
	}
	if r.at < 0 {
		r.at = len(r.text)
	}
}

func (r *reference) lineStart() int {
	at := r.at
	for at > 0 && r.text[at-1] != "\n" {
		at--
	}
	return at
}

func (r *reference) lineEnd() int {
	at := r.at
	for at < len(r.text) && r.text[at] != "\n" {
		at++
	}
	return at
}

func (r *reference) key(name string) {
	switch name {
	case "left":
		r.at = max(0, r.at-1)
	case "right":
		r.at = min(len(r.text), r.at+1)
	case "ctrl+a":
		r.at = r.lineStart()
	case "ctrl+e":
		r.at = r.lineEnd()
	case "ctrl+home":
		r.at = 0
	case "ctrl+end":
		r.at = len(r.text)
	case "backspace":
		r.replace(max(0, r.at-1), r.at, "")
	case "delete":
		r.replace(r.at, min(len(r.text), r.at+1), "")
	case "ctrl+k":
		to := r.lineEnd()
		if to == r.at {
			to = min(len(r.text), r.at+1)
		}
		r.replace(r.at, to, "")
	case "ctrl+u":
		from := r.lineStart()
		if from == r.at {
			from = max(0, r.at-1)
		}
		r.replace(from, r.at, "")
	case "ctrl+j":
		r.replace(r.at, r.at, "\n")
	}
}

var (
	pieces = rapid.SampledFrom([]string{
		"a", "b", " ", "x y", "é", "e\u0301", "\u0301", "日本", "語", "👩‍👩‍👧‍👦", "\u200d", "👩", "🇩🇪", "🇩", "🇪", "\t", "\n", "\r\n", "한", "\u1112", "\u1161", "क्", "ष", "👍🏽", "\ufe0f", "\u0600", "\x1b", "long words follow here", "١",
	})
	keyNames = rapid.SampledFrom([]string{"left", "right", "ctrl+a", "ctrl+e", "ctrl+home", "ctrl+end", "backspace", "delete", "ctrl+k", "ctrl+u", "ctrl+j"})
)

func TestRandomEditsAreThoseOfASliceOfGraphemes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e prompt.Editor
		r := &reference{}
		for range rapid.IntRange(1, 60).Draw(t, "edits") {
			if rapid.Bool().Draw(t, "typed") {
				text := pieces.Draw(t, "text")
				e.Insert(text)
				r.replace(r.at, r.at, strings.ReplaceAll(text, "\r\n", "\n"))
			} else {
				name := keyNames.Draw(t, "key")
				e.Key(name)
				r.key(name)
			}
			if e.Text() != r.String() {
				t.Fatalf("part/12 the text is %q, want %q", e.Text(), r)
			}
			checkView(t, &e, r)
		}
	})
}

// checkView compares the rows of the editor with the text, and its cursor with the
// one of the reference.
func checkView(t *rapid.T, e *prompt.Editor, r *reference) {
	t.Helper()
	width := rapid.IntRange(8, 20).Draw(t, "width")
	rows, x, y := e.View(width, 1000)
	for _, row := range rows {
		if ansi.StringWidth(row) > width {
			t.Fatalf("part/12 a row has more than %d columns: %q", width, row)
		}
	}
	want, column := "", 0
	above := strings.Join(rows[:y], "")
	for _, cluster := range r.text[:r.at] {
		cluster = strings.NewReplacer("\n", "", "\t", "    ", "\x1b", `\u001b`).Replace(cluster)
		if len(want) >= len(above) {
			column += ansi.StringWidth(cluster)
		}
		want += cluster
	}
	if want = strings.TrimPrefix(want, above); !strings.HasPrefix(rows[y], want) || x != column {
		t.Fatalf("part/12 the cursor is at %d, %d of %q, want it after %q, at %d", x, y, rows, want, column)
	}
}

func TestUndoAndRedoVisitTheSameTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e prompt.Editor
		for range rapid.IntRange(1, 40).Draw(t, "edits") {
			if rapid.Bool().Draw(t, "typed") {
				e.Insert(pieces.Draw(t, "text"))
			} else {
				e.Key(keyNames.Draw(t, "key"))
			}
		}
		final := e.Text()
		texts := []string{final}
		for range 100 {
			e.Key("ctrl+_")
			texts = append(texts, e.Text())
		}
		if !e.Empty() {
			t.Fatalf("part/12 after undo there is %q", e.Text())
		}
		slices.Reverse(texts)
		texts = slices.Compact(texts)
		seen := []string{""}
		for range 100 {
			e.Key("alt+_")
			seen = append(seen, e.Text())
		}
		if seen = slices.Compact(seen); e.Text() != final || !slices.Equal(seen, texts) {
			t.Fatalf("part/12 redo gives %q, undo gave %q", seen, texts)
		}
	})
}

func TestEditingKeys(t *testing.T) {
	for _, c := range []struct {
		name, text string
		keys       []string
		want       string
		x, y       int
	}{
		{"words", "one two three", []string{"ctrl+w", "alt+left", "ctrl+k"}, "one ", 4, 0},
		{"words end at punctuation", "run foo.bar(baz)", []string{"alt+backspace"}, "run foo.bar(", 8, 1},
		{"a word over a newline", "one\n  two", []string{"home", "alt+left", "alt+d"}, "\n  two", 0, 0},
		{"lines", "one\ntwo", []string{"up", "end", "ctrl+j"}, "one\n\ntwo", 0, 1},
		{"the line", "one\ntwo", []string{"ctrl+u"}, "one\n", 0, 1},
		{"column", "one\ntwo", []string{"left", "up", "delete"}, "on\ntwo", 2, 0},
		{"the column lasts over a short line", "abcdef\ng\nhijklm", []string{"left", "up", "up", "delete"}, "abcde\ng\nhijklm", 5, 0},
		{"the ends", "ab", []string{"right", "home", "left", "backspace", "delete"}, "b", 0, 0},
		{"a family is one step", "a👩‍👩‍👧‍👦b", []string{"left", "left", "backspace"}, "👩‍👩‍👧‍👦b", 0, 0},
		{"a family is deleted whole", "a👩‍👩‍👧‍👦", []string{"backspace"}, "a", 1, 0},
		{"flags", "🇩🇪🇫🇷", []string{"left", "backspace"}, "🇫🇷", 0, 0},
		{"an accent joins the letter before it", "e", []string{"ctrl+a"}, "e", 0, 0},
		{"wide characters wrap", "日本語日本語", nil, "日本語日本語", 2, 1},
		{"soft wrap after a space", "aaa bbb ccc ddd", nil, "aaa bbb ccc ddd", 7, 1},
		{"home goes to the row, then to the line", "aaa bbb ccc ddd", []string{"home", "ctrl+j"}, "aaa bbb \nccc ddd", 0, 1},
		{"home twice", "aaa bbb ccc ddd", []string{"home", "home", "delete"}, "aa bbb ccc ddd", 0, 0},
		{"up stays in a wrapped line", "aaa bbb ccc ddd", []string{"up", "delete"}, "aaa bbbccc ddd", 7, 0},
		{"kills add up", "one two three", []string{"ctrl+w", "ctrl+w", "ctrl+y", "ctrl+y"}, "one two threetwo three", 5, 2},
		{"forward kills add up", "one\ntwo", []string{"ctrl+home", "ctrl+k", "ctrl+k", "ctrl+k", "ctrl+y"}, "one\ntwo", 3, 1},
		{"a tab stays a tab", "a\tb", []string{"left", "left", "left", "right", "right"}, "a\tb", 5, 0},
		{"control characters are shown by escapes", "a\x1bb", nil, "a\x1bb", 8, 0},
		{"newlines of Windows", "a\r\nb\rc", []string{"left", "backspace"}, "a\nbc", 1, 1},
		{"undo of a word", "", []string{"ctrl+_", "ctrl+_", "alt+_"}, "", 0, 0},
	} {
		var e prompt.Editor
		e.View(11, 10)
		e.Insert(c.text)
		for _, k := range c.keys {
			if !e.Key(k) {
				t.Errorf("part/12 %s: %s is not an editing key", c.name, k)
			}
		}
		rows, x, y := e.View(11, 10)
		if e.Text() != c.want || x != c.x || y != c.y {
			t.Errorf("part/12 %s: %q at %d, %d of %q; want %q at %d, %d", c.name, e.Text(), x, y, rows, c.want, c.x, c.y)
		}
	}
}

func TestWordsAreUndoneOneByOne(t *testing.T) {
	var e prompt.Editor
	for letter := range strings.SplitSeq("fix the test", "") {
		e.Insert(letter)
	}
	var got []string
	for range 4 {
		e.Key("ctrl+_")
		got = append(got, e.Text())
	}
	if want := []string{"fix the ", "fix the", "fix ", "fix"}; !slices.Equal(got, want) {
		t.Errorf("part/12 undo gives %q, want %q", got, want)
	}
}

func TestBackslashAndEnterAreANewline(t *testing.T) {
	var e prompt.Editor
	e.Insert(`one\`)
	if !e.Continue() || e.Text() != "one\n" {
		t.Errorf("part/12 the text is %q", e.Text())
	}
	if e.Continue() {
		t.Errorf("part/12 it continues %q", e.Text())
	}
}

func TestOnlyTheRowsAroundTheCursorAreShown(t *testing.T) {
	var e prompt.Editor
	e.Insert("1\n2\n3\n4\n5")
	e.Key("up")
	rows, _, y := e.View(20, 3)
	if !slices.Equal(rows, []string{"2", "3", "4"}) || y != 2 {
		t.Errorf("part/12 it shows %q with the cursor in row %d", rows, y)
	}
	e.Key("ctrl+home")
	if rows, _, y = e.View(20, 3); !slices.Equal(rows, []string{"1", "2", "3"}) || y != 0 {
		t.Errorf("part/12 it shows %q with the cursor in row %d", rows, y)
	}
}
