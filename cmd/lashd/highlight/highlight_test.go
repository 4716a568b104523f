package highlight

import (
	"bytes"
	"fmt"
	"os"
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
		want := "c:# find\nk:for f k:in [n:1, n:2.5]:\n    b:print(t:\"t:at:\", f)\n\nx = k:None"
		for _, language := range []string{"starlark", "python"} {
			if got := marked(Lines(language, source)); got != want {
				t.Errorf("%s is\n%s\nwant\n%s", language, got, want)
			}
		}
	})
	t.Run("issue/19-8 a text of several lines is a text in each of them", func(t *testing.T) {
		if got, want := marked(Lines("python", "x = '''one\ntwo'''")), "x = t:'''t:one\nt:twot:'''"; got != want {
			t.Errorf("it is\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("issue/19-8 code of other languages, long code and code with mistakes keeps its text", func(t *testing.T) {
		for language, source := range map[string]string{
			"calc": "print 1\n\n# x", "starlark": "x = \"\n\t$?\r\ndef (((\n", "python": strings.Repeat("x = 1\n", 20_000),
		} {
			var lines []string
			for _, line := range Lines(language, source) {
				text := ""
				for _, token := range line {
					text += token.Text
				}
				lines = append(lines, text)
			}
			if got := strings.Join(lines, "\n"); got != source {
				t.Errorf("%s code %.40q became %.40q", language, source, got)
			}
		}
		if got := marked(Lines("calc", "for # x")); got != "for # x" {
			t.Errorf("another language is %q", got)
		}
	})
	t.Run("issue/19-8 the lexer has its license", func(t *testing.T) {
		if license, err := os.ReadFile("LICENSE"); err != nil || !bytes.HasPrefix(license, []byte("Copyright (C) 2017 Alec Thomas\n\nPermission is hereby granted, free of charge")) {
			t.Errorf("it begins with %.60q (%v)", license, err)
		}
	})
}
