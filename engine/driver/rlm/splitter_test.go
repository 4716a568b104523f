package rlm

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// split splits a text that arrives in the given deltas.
func split(deltas ...string) (s *splitter, pieces []turn.Piece) {
	s = newSplitter("starlark")
	for _, d := range deltas {
		pieces = append(pieces, s.Write(d)...)
	}
	return s, append(pieces, s.Break()...)
}

// joined joins the texts of one kind.
func joined(pieces []turn.Piece, kind protocol.PartKind) (text, shown string) {
	for _, p := range pieces {
		if p.Kind == kind {
			text, shown = text+p.Text, shown+p.Shown
		}
	}
	return text, shown
}

func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		text              string
		prose, code, seen string
		open              bool
	}{
		"prose only":                    {text: "hello\nyou\n", prose: "hello\nyou\n"},
		"a cell only":                   {text: "<starlark>\nx = 1\n</starlark>\n", code: "<starlark>\nx = 1\n</starlark>", seen: "x = 1"},
		"prose, then a cell":            {text: "Look:\n\n<starlark>\nx\ny\n</starlark>", prose: "Look:\n\n", code: "<starlark>\nx\ny\n</starlark>", seen: "x\ny"},
		"text after the cell":           {text: "a\n<starlark>\nx\n</starlark>\nOutput: 3", prose: "a\n", code: "<starlark>\nx\n</starlark>", seen: "x"},
		"a second cell":                 {text: "<starlark>\nx\n</starlark>\n<starlark>\ny\n</starlark>\n", code: "<starlark>\nx\n</starlark>", seen: "x"},
		"blanks around the tags":        {text: "a\n  <starlark>\t\r\nx\r\n </starlark> \r\nb", prose: "a\n", code: "  <starlark>\t\r\nx\r\n </starlark>", seen: "x"},
		"blank text before the cell":    {text: "\n \n<starlark>\nx\n</starlark>", code: "<starlark>\nx\n</starlark>", seen: "x"},
		"blank text before prose stays": {text: "\n\n hello", prose: "\n\n hello"},
		"blank text only":               {text: "\n \n"},
		"an empty cell":                 {text: "<starlark>\n</starlark>\n", code: "<starlark>\n</starlark>"},
		"a cell that is not closed":     {text: "a\n<starlark>\nx = 1\n", prose: "a\n", code: "<starlark>\nx = 1\n", seen: "x = 1", open: true},
		"a cell that is cut in its tag": {text: "<starlark>\nx\n</star", code: "<starlark>\nx\n</star", seen: "x\n</star", open: true},
		"an opening tag at the end":     {text: "a\n<starlark>", prose: "a\n", code: "<starlark>", open: true},
		"a tag within a line":           {text: "use <starlark>\nx\n</starlark>\n", prose: "use <starlark>\nx\n</starlark>\n"},
		"a line that goes on":           {text: "<starlark>x = 1</starlark>\n", prose: "<starlark>x = 1</starlark>\n"},
		"another language":              {text: "<python>\nx\n</python>\n", prose: "<python>\nx\n</python>\n"},
		"another case":                  {text: "<Starlark>\nx\n</Starlark>\n", prose: "<Starlark>\nx\n</Starlark>\n"},
		"a closing tag in a string":     {text: "<starlark>\ns = '</starlark>'\n</starlark>", code: "<starlark>\ns = '</starlark>'\n</starlark>", seen: "s = '</starlark>'"},
		"an opening tag in the cell":    {text: "<starlark>\n<starlark>\n</starlark>", code: "<starlark>\n<starlark>\n</starlark>", seen: "<starlark>"},
		"a lone closing tag":            {text: "a\n</starlark>\n", prose: "a\n</starlark>\n"},
		"a carriage return in a line":   {text: "<starlark>\na\rb\r\r\n</starlark>", code: "<starlark>\na\rb\r\r\n</starlark>", seen: "a\rb\r"},
		"more blanks than a tag has":    {text: strings.Repeat(" ", 300) + "<starlark>\nx\n</starlark>", prose: strings.Repeat(" ", 300) + "<starlark>\nx\n</starlark>"},
	} {
		t.Run("runtime/R02 cells are found: "+name, func(t *testing.T) {
			s, pieces := split(c.text)
			prose, shown := joined(pieces, protocol.PartProse)
			code, seen := joined(pieces, protocol.PartCode)
			if prose != c.prose || shown != c.prose || code != c.code || seen != c.seen {
				t.Errorf("prose %q, code %q, people see %q and %q", prose, code, shown, seen)
			}
			if s.Done() == c.open || s.Done() && c.code == "" {
				if c.code != "" {
					t.Errorf("done: %t", s.Done())
				}
			}
		})
	}
}

func TestSplitStream(t *testing.T) {
	t.Run("runtime/R02 code is known as code while it arrives, and the end of the cell as soon as its line ends", func(t *testing.T) {
		s := newSplitter("starlark")
		for _, step := range []struct {
			delta, prose, seen string
			done               bool
		}{
			{"Let me ", "Let me ", "", false}, {"look.\n", "look.\n", "", false}, {"<st", "", "", false}, {"arlark>", "", "", false},
			{"\n", "", "", false}, {"x = ", "", "x = ", false}, {"1\n", "", "1", false}, {"print(x)", "", "\nprint(x)", false},
			{"\n</star", "", "", false}, {"lark>", "", "", false}, {"\nOutput", "", "", true}, {" more", "", "", true},
		} {
			pieces := s.Write(step.delta)
			prose, _ := joined(pieces, protocol.PartProse)
			_, seen := joined(pieces, protocol.PartCode)
			if prose != step.prose || seen != step.seen || s.Done() != step.done {
				t.Errorf("%q: prose %q, people see %q, done %t", step.delta, prose, seen, s.Done())
			}
		}
	})
	t.Run("runtime/R02 a delta never ends within a character", func(t *testing.T) {
		s := newSplitter("starlark")
		for _, b := range []byte("fünf 世界\n<starlark>\n'世界'\n</starlark>") {
			for _, p := range s.Write(string([]byte{b})) {
				if !utf8.ValidString(p.Text) {
					t.Errorf("a piece is %q", p.Text)
				}
			}
		}
	})
	t.Run("runtime/R02 where something else follows, the text that was held back comes first", func(t *testing.T) {
		s := newSplitter("starlark")
		s.Write("a\n<star")
		if prose, _ := joined(s.Break(), protocol.PartProse); prose != "<star" {
			t.Errorf("prose %q", prose)
		}
		pieces := append(s.Write("<starlark>\nx\n</starlark>"), s.Break()...)
		if code, _ := joined(pieces, protocol.PartCode); code != "<starlark>\nx\n</starlark>" || !s.Done() {
			t.Errorf("code %q", code)
		}
	})
}

// reference finds the cell of a text that has arrived completely, line by line.
func reference(text string) (prose, code string, closed bool) {
	lines := strings.SplitAfter(text, "\n")
	is := func(line, tag string) bool {
		line = strings.TrimSuffix(line, "\n")
		return len(line) <= 256 && strings.Trim(line, " \t\r\v\f") == tag
	}
	for i, line := range lines {
		if !is(line, "<starlark>") {
			prose += line
			continue
		}
		code = line
		for _, line := range lines[i+1:] {
			if is(line, "</starlark>") {
				return prose, code + strings.TrimRight(line, " \t\r\v\f\n"), true
			}
			code += line
		}
		break
	}
	return prose, code, false
}

// checkCuts compares what a splitter finds in a text that is cut in places with what is in the whole text.
func checkCuts(t *testing.T, text string, cuts []int) {
	t.Helper()
	var deltas []string
	at := 0
	for _, c := range cuts {
		if c > at && c < len(text) {
			deltas, at = append(deltas, text[at:c]), c
		}
	}
	s, pieces := split(append(deltas, text[at:])...)
	wantProse, wantCode, closed := reference(text)
	if strings.TrimSpace(wantProse) == "" {
		wantProse = ""
	}
	prose, _ := joined(pieces, protocol.PartProse)
	code, seen := joined(pieces, protocol.PartCode)
	if prose != wantProse || code != wantCode || s.Done() != closed {
		t.Fatalf("%q cut into %q:\nprose %q, want %q\ncode %q, want %q\ndone %t, want %t", text, deltas, prose, wantProse, code, wantCode, s.Done(), closed)
	}
	if language, source, _ := protocol.SplitCell(code); code != "" && (language != "starlark" || source != seen) {
		t.Fatalf("%q cut into %q: people see %q while the cell arrives, and later %q (%s)", text, deltas, seen, source, language)
	}
	again := newSplitter("starlark")
	var second []turn.Piece
	for _, part := range []string{prose, code} {
		second = append(append(second, again.Write(part)...), again.Break()...)
	}
	if p, _ := joined(second, protocol.PartProse); p != prose {
		t.Fatalf("%q: split again, the prose is %q, it was %q", text, p, prose)
	}
	if c, _ := joined(second, protocol.PartCode); c != code {
		t.Fatalf("%q: split again, the code is %q, it was %q", text, c, code)
	}
}

// scraps are what random replies are made of.
var scraps = []string{
	"<starlark>", "</starlark>", "<starlark>\n", "\n</starlark>\n", "\n", "\r\n", "\r", " ", "\t", "x = 1", "世", "\xe4", "ü", "<", ">", "</", "<star", "lark>",
	"hello", "\n\n", "</python>", "\v", strings.Repeat(" ", 250), "'", "\\n",
}

func TestRandomCuts(t *testing.T) {
	t.Run("runtime/R02 the pieces of a reply do not depend on where its deltas are cut", func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 10_000 {
			var text strings.Builder
			for range rnd.IntN(14) {
				text.WriteString(scraps[rnd.IntN(len(scraps))])
			}
			var cuts []int
			for at := 0; at < text.Len(); at += 1 + rnd.IntN(5) {
				cuts = append(cuts, at)
			}
			checkCuts(t, text.String(), cuts)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("Look:\n<starlark>\nx = 1\n</starlark>\nrest", []byte{3, 1, 2})
	f.Add("\r\n <starlark>\r\n'世'\r\n</starlark>\r\n", []byte{1})
	f.Fuzz(func(t *testing.T, text string, steps []byte) {
		var cuts []int
		at := 0
		for _, n := range steps {
			at += int(n)
			cuts = append(cuts, at)
		}
		checkCuts(t, text, cuts)
	})
}
