package cli

import (
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/internal/console"
	"lashd/cmd/lash/markdown"
)

// outputStyle returns the style of text on stdout, or false if stdout is not a
// terminal. Other programs get text as it was written.
func outputStyle() (markdown.Style, bool) {
	return markdown.Detect(os.Stdout, os.Environ()), console.Terminal(os.Stdout)
}

// shownMarkdown returns a text in Markdown for stdout: rendered if that is a
// terminal.
func shownMarkdown(text string) string {
	if style, ok := outputStyle(); ok {
		return strings.Join(markdown.Render(text, style), "\n")
	}
	return text
}

// answer renders the answer of a turn while it grows. The zero value leaves the
// text as it is.
type answer struct {
	stream *markdown.Stream // nil: stdout is not a terminal
	width  int
}

// newAnswer returns the answer for stdout.
func newAnswer() answer {
	style, ok := outputStyle()
	if !ok {
		return answer{}
	}
	return answer{markdown.NewStream(style), style.Width}
}

// add appends text and returns what to print.
func (a answer) add(text string) string {
	if a.stream == nil {
		return console.Printable(text)
	}
	return joined(a.stream.Add(text))
}

// end returns what is left to print at the end of the text.
func (a answer) end() string {
	if a.stream == nil {
		return ""
	}
	return joined(a.stream.End())
}

// growing returns the end of the unfinished block on one line that fits the
// terminal, or "".
func (a answer) growing() string {
	if a.stream == nil {
		return ""
	}
	rest := a.stream.Rest()
	if len(rest) == 0 {
		return ""
	}
	line := rest[len(rest)-1]
	if over := ansi.StringWidth(line) - max(a.width-1, 1); over > 0 {
		line = ansi.TruncateLeft(line, over+1, "…")
	}
	return line
}

// joined returns lines with their newlines.
func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}
