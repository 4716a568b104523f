package console

import (
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// leastText is the least width in which Hanging breaks lines.
const leastText = 12

// toCopy matches a command at the end of a sentence, which a person copies. The name of the program in front of a message is no sentence.
var toCopy = regexp.MustCompile(`[^\n]{6}: lashd? [^;?\n]+`)

// hardSpace is a space at which no line ends.
const hardSpace = "\u00a0"

// Wrapped breaks the lines of a text between words, so that they fit a width. A command that follows a colon stays on one line, which can
// then be copied; the terminal breaks it if it must. A width of 0 breaks nothing.
func Wrapped(text string, width int) string {
	if width <= 0 {
		return text
	}
	text = toCopy.ReplaceAllStringFunc(text, func(command string) string {
		before, after, _ := strings.Cut(command, ": lash")
		return before + ": lash" + strings.ReplaceAll(after, " ", hardSpace)
	})
	return strings.ReplaceAll(fill(text, width, "", false), hardSpace, " ")
}

// WrappedBetween does the same with a text of several parts, whose lines end only between parts.
func WrappedBetween(text, gap string, width int) string {
	parts := strings.Split(text, gap)
	for i, part := range parts {
		words := strings.TrimLeft(part, " ")
		parts[i] = part[:len(part)-len(words)] + strings.ReplaceAll(words, " ", hardSpace)
	}
	return strings.ReplaceAll(Wrapped(strings.Join(parts, gap), width), hardSpace, " ")
}

// Hanging breaks the lines of a text that begins after indent cells and continues at that indent, also within long words. It keeps a text
// whose width is not known or leaves no room.
func Hanging(text string, width, indent int) string {
	if width-indent < leastText {
		return text
	}
	return fill(text, width-indent, strings.Repeat(" ", indent), true)
}

// fill breaks the lines of a text between words, and begins each further line with an indent and with the spaces of the line that it broke. A word that is longer than a line is
// split, or stays whole.
func fill(text string, width int, indent string, split bool) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		own := line[:len(line)-len(strings.TrimLeft(line, " "))]
		for ansi.StringWidth(line) > width {
			first, rest := cut(line, width)
			if split && ansi.StringWidth(first) > width {
				first = ansi.Truncate(first, width, "")
				rest = line[len(first):]
			}
			lines, line = append(lines, strings.TrimRight(first, " ")), own+rest
			if rest == "" {
				line = ""
				break
			}
		}
		if line != "" || len(lines) == 0 {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n"+indent)
}

// cut returns as many words of a line as fit a width, at least one, and the other words.
func cut(line string, width int) (first, rest string) {
	at, next := 0, len(line)-len(strings.TrimLeft(line, " "))
	for {
		i := strings.IndexByte(line[next:], ' ')
		if i < 0 {
			i = len(line) - next
		}
		if at > 0 && ansi.StringWidth(line[:next+i]) > width {
			break
		}
		if at = next + i; at == len(line) {
			break
		}
		next = at + 1
	}
	return line[:at], strings.TrimLeft(line[at:], " ")
}

// Say prints a line about what a command did on stdout, in lines that fit a terminal.
func Say(line string) error {
	_, err := io.WriteString(Stdout, Wrapped(Printable(line), Columns(os.Stdout))+"\n")
	return err
}

// Stderr prints a line for a person on stderr, in lines that fit a terminal.
func Stderr(line string) {
	os.Stderr.WriteString(Wrapped(Printable(line), Columns(os.Stderr)) + "\n")
}
