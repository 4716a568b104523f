package highlight

import (
	"fmt"
	"strings"
	"testing"
)

// marked returns lines with a letter before each token that is not plain.
func marked(lines [][]Token) string {
	var all []string
	for _, line := range lines {
		var text strings.Builder
		for _, token := range line {
			if token.Kind != Plain {
				fmt.Fprintf(&text, "%c:", " kbtnc"[token.Kind])
			}
			text.WriteString(token.Text)
		}
		all = append(all, text.String())
	}
	return strings.Join(all, "\n")
}

func TestLines(t *testing.T) {
	t.Run("issue/19-8 Starlark and Python code has kinds of tokens", func(t *testing.T) {
		source := "# find\nfor f in [1, 2.5]:\n    print(\"a\", f)\n\nx = None"
		want := "c:# find\nk:for f k:in [n:1, n:2.5]:\n    b:print(t:\"a\", f)\n\nx = k:None"
		for _, language := range []string{"starlark", "python"} {
			if got := marked(Lines(language, source)); got != want {
				t.Errorf("%s is\n%s\nwant\n%s", language, got, want)
			}
		}
	})
	t.Run("issue/19-8 a text of several lines is a text in each of them", func(t *testing.T) {
		if got, want := marked(Lines("python", "x = '''one\ntwo'''")), "x = t:'''one\nt:two'''"; got != want {
			t.Errorf("it is\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("issue/19-8 quotation marks, prefixes and numbers", func(t *testing.T) {
		for source, want := range map[string]string{
			`x = "a\"b" + 'c'`:        `x = t:"a\"b" + t:'c'`,
			`rb"x" bar"y"`:            `t:rb"x" bart:"y"`,
			"\"open\nfor":             "t:\"open\nk:for",
			`'''open`:                 `t:'''open`,
			`'''a\'''b''' c`:          `t:'''a\'''b''' c`,
			`x1 0xFF 1_000 .5 1e-3 5`: `x1 n:0xFF n:1_000 n:.5 n:1e-3 n:5`,
			`"#no" #"yes"`:            `t:"#no" c:#"yes"`,
			`größe.format(fortune)`:   `größe.format(fortune)`,
		} {
			if got := marked(Lines("python", source)); got != want {
				t.Errorf("%s is %s, want %s", source, got, want)
			}
		}
	})
	t.Run("issue/19-8 code of other languages, long code and code with mistakes keeps its text", func(t *testing.T) {
		for language, source := range map[string]string{
			"calc": "print 1\n\n# x", "starlark": "x = \"\n\t$?\r\ndef (((\xff\n", "python": strings.Repeat("x = 1\n", 50_000),
		} {
			var lines []string
			for _, line := range Lines(language, source) {
				var text strings.Builder
				for _, token := range line {
					text.WriteString(token.Text)
				}
				lines = append(lines, text.String())
			}
			if got := strings.Join(lines, "\n"); got != source {
				t.Errorf("%s code %.40q became %.40q", language, source, got)
			}
		}
		if got := marked(Lines("calc", "for # x")); got != "for # x" {
			t.Errorf("another language is %q", got)
		}
	})
}
