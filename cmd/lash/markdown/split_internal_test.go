package markdown

import (
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"
)

// tricky are lines whose meaning depends on the lines around them.
var tricky = []string{
	"", "", "", "text", "more *text*", "- a", "- b", "  - nested", "* c", "1. one", "2. two", "7) seven", "   below", "  two", "    four", "\ttab", "```", "```go", "~~~",
	"````", "> quote", ">", "# head", "#no", "---", "===", "***", "-", "| a | b |", "|---|---|", "| c", "<div>", "</div>", "<b>x</b> y", "<i>", "<!-- open", "close -->",
	"<pre>", "</pre>", "- ```", "  ```", "10. ten", "- - -", "[x]: /u", "\\", "a  ", "`open", "-\tx", "<details>", "a | b",
}

// whole renders a text that is parsed at once.
func whole(source string) []string {
	data := []byte(source + "\n")
	p := painter{Style{}, data}
	return p.style.lines(p.blocks(markdown().Parse(text.NewReader(data))))
}

// bare returns lines without empty ones and without white space around them.
func bare(lines []string) (out []string) {
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

func TestSplit(t *testing.T) {
	t.Run("part/12 a text that is cut into blocks has the lines of the text that is parsed whole", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(tricky), 1, 14).Draw(t, "lines"), "\n")
			source = strings.ReplaceAll(source, "|---|---|\n===", "|---|---|") // Goldmark makes three different things of it
			got, want := bare(Render(source, Style{})), bare(whole(source))
			if !slices.Equal(got, want) {
				t.Fatalf("%q\nis\n%s\nwant\n%s", source, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	})
}
