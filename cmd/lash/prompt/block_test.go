package prompt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/prompt"
	"lashd/rpc/protocol"
)

// pasted returns a text of n lines.
func pasted(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\tline %d of a long text, with some more words\n", i)
	}
	return b.String()
}

// screen returns what an editor shows, without colors.
func screen(e *prompt.Editor) string {
	rows, _, _ := e.View(60, 10)
	return ansi.Strip(strings.Join(rows, "\n"))
}

func TestALongPasteIsOneBlock(t *testing.T) {
	var e prompt.Editor
	text := pasted(5000)
	e.Insert("see ")
	e.Paste(strings.ReplaceAll(text, "\n", "\r\n"))
	e.Insert(" please")
	if got := screen(&e); got != "see [pasted 5,000 lines] please" {
		t.Errorf("part/12 it shows %q", got)
	}
	if e.Text() != "see "+text+" please" {
		t.Errorf("part/12 the text has %d bytes", len(e.Text()))
	}
	for range len(" please") {
		e.Key("left")
	}
	e.Key("backspace")
	if e.Text() != "see  please" {
		t.Errorf("part/12 after backspace it is %q", e.Text())
	}
	e.Key("ctrl+_")
	if !e.Expand() || e.Expand() {
		t.Error("part/12 it is not expanded once")
	}
	if got := screen(&e); !strings.Contains(got, "    line 4999 of a long text") || e.Text() != "see "+text+" please" {
		t.Errorf("part/12 expanded it shows %q", got)
	}
}

func TestWhiteSpaceOfAPasteIsSent(t *testing.T) {
	var e prompt.Editor
	text := pasted(20)
	e.Insert("  ")
	e.Paste(text)
	e.Insert("\n ")
	if d := e.Take(); d.Text() != text {
		t.Errorf("part/12 it sends %q", d.Text())
	}
	if !e.Empty() {
		t.Errorf("part/12 it keeps %q", e.Text())
	}
}

func TestAShortPasteIsText(t *testing.T) {
	var e prompt.Editor
	e.Paste("a\r\n\tb")
	if got := screen(&e); got != "a\n    b" || e.Text() != "a\n\tb" {
		t.Errorf("part/12 it shows %q of %q", got, e.Text())
	}
	e.Paste(strings.Repeat("x", 3000))
	if got := screen(&e); got != "a\n    b[pasted 3,000 characters]" {
		t.Errorf("part/12 it shows %q", got)
	}
}

func TestFilesAreLabels(t *testing.T) {
	var e prompt.Editor
	image := &protocol.Attachment{Name: "a.png", Type: "image/png", Data: make([]byte, 34<<10)}
	e.Insert("look at ")
	e.Attach(image)
	e.Insert("now")
	if got := screen(&e); got != "look at [image a.png 34 KB] now" {
		t.Errorf("part/12 it shows %q", got)
	}
	if got := e.Editable(); got != "look at [image a.png 34 KB] now" {
		t.Errorf("part/12 another editor gets %q", got)
	}
	e.SetEdited("[image a.png 34 KB] is\nbetter")
	if got := screen(&e); got != "[image a.png 34 KB] is\nbetter" || len(e.Files()) != 1 || e.Text() != "[image a.png] is\nbetter" {
		t.Errorf("part/12 after another editor it shows %q, with %d files, and sends %q", got, len(e.Files()), e.Text())
	}
	e.Key("ctrl+home")
	e.Key("delete")
	if len(e.Files()) != 0 || e.Text() != " is\nbetter" {
		t.Errorf("part/12 after delete it sends %q with %d files", e.Text(), len(e.Files()))
	}
}

func TestALabelFitsANarrowScreen(t *testing.T) {
	var e prompt.Editor
	e.Insert("ab ")
	e.Paste(pasted(12))
	rows, _, _ := e.View(10, 5)
	for i, row := range rows {
		rows[i] = ansi.Strip(row)
	}
	if !slices.Equal(rows, []string{"ab ", "[pasted 1…"}) {
		t.Errorf("part/12 it shows %q", rows)
	}
}

func BenchmarkKeyIn5000Lines(b *testing.B) {
	var e prompt.Editor
	e.Paste(pasted(5000))
	e.Expand()
	for range 2500 {
		e.Key("up")
	}
	for _, name := range []string{"left", "up", "backspace", "ctrl+j", "ctrl+k", "ctrl+_"} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				e.Key(name)
				e.View(100, 10)
			}
		})
	}
	b.Run("letter", func(b *testing.B) {
		for range b.N {
			e.Insert("x")
			e.View(100, 10)
			e.Key("backspace")
		}
	})
}

func TestSeveralFilesOfALineReturnFromAnotherEditor(t *testing.T) {
	var e prompt.Editor
	e.Insert("compare ")
	for _, name := range []string{"a", "b", "c"} {
		e.Attach(&protocol.Attachment{Name: name, Type: "image/png", Data: []byte("x")})
	}
	e.SetEdited("to " + e.Editable())
	if got := screen(&e); got != "to compare [image a 1 KB] [image b 1 KB] [image c 1 KB] " || len(e.Files()) != 3 {
		t.Errorf("part/12 it shows %q with %d files", got, len(e.Files()))
	}
}

func TestADraftReturnsAboveTheText(t *testing.T) {
	var e prompt.Editor
	e.Insert("typed")
	e.Key("left")
	e.Prepend(prompt.DraftOf("one\ntwo"))
	e.Insert("!")
	if got := e.Text(); got != "one\ntwo\ntype!d" {
		t.Errorf("part/12 it is %q", got)
	}
	e.Key("ctrl+_")
	if e.Key("ctrl+_"); e.Text() != "typed" {
		t.Errorf("part/12 after undo it is %q", e.Text())
	}
}
