package markdown

import (
	"slices"
	"strings"
	"unicode"
)

// closeTable completes the first two lines of a table, so that they are a table
// from the start.
func (s *splitter) closeTable() {
	if s.kind != paragraphBlock || len(s.lines) == 0 || len(s.lines) > 2 {
		return
	}
	head := strings.TrimSpace(s.lines[0])
	begun := len(s.lines) == 1 && strings.HasSuffix(head, "|") || len(s.lines) == 2 && strings.Trim(s.lines[1], "|:- \t") == ""
	if strings.HasPrefix(head, "|") && len(head) > 1 && begun {
		columns := strings.Count(strings.Trim(head, "|"), "|") + 1
		s.lines = []string{head, strings.Repeat("|---", columns)}
	}
}

// closeInline closes the marks of emphasis and code that the open block has not
// closed yet, so that its text does not move when they are.
func (s *splitter) closeInline() {
	if len(s.lines) == 0 || s.kind == indentedBlock || s.kind == htmlBlock || s.kind == htmlPairBlock {
		return
	}
	from := len(s.lines) - 1
	for from > 0 && strings.TrimSpace(s.lines[from-1]) != "" && !interrupts(strings.TrimLeft(s.lines[from], " \t")) {
		from--
	}
	text := closed(strings.Join(s.lines[from:], "\n"))
	s.lines = append(s.lines[:from:from], strings.Split(text, "\n")...)
}

// closed returns the text of a paragraph with its open marks closed. Marks at the
// very end have no text yet and are removed.
func closed(text string) string {
	var open []string
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '\\':
			i += 2
		case '`':
			n := run(text[i:])
			mark := text[i : i+n]
			end := closing(text[i+n:], mark)
			if end < 0 {
				return closeMarks(closeCode(text, i+n, mark), open)
			}
			i += n + end + n
		case '*', '_', '~':
			n := run(text[i:])
			open = emphasis(open, text, i, n)
			i += n
		default:
			i++
		}
	}
	return closeMarks(text, open)
}

// run returns the number of times that a text repeats its first character.
func run(text string) int { return len(text) - len(strings.TrimLeft(text, text[:1])) }

// closing returns the offset of the run of backticks that equals mark, or -1.
func closing(text, mark string) int {
	for i := 0; i < len(text); {
		if text[i] != '`' {
			i++
			continue
		}
		n := run(text[i:])
		if n == len(mark) {
			return i
		}
		i += n
	}
	return -1
}

// closeCode closes code that begins at an offset, or removes its mark if it has no
// text yet.
func closeCode(text string, from int, mark string) string {
	inside := strings.TrimRight(text[from:], "`")
	if strings.TrimSpace(inside) == "" {
		return text[:from-len(mark)]
	}
	return text[:from] + inside + mark
}

// emphasis applies the run of n marks at an offset to the marks that are open.
func emphasis(open []string, text string, at, n int) []string {
	mark := text[at : at+n]
	if mark[0] == '~' && n != 2 || n > 3 {
		return open
	}
	before, after := ' ', ' '
	if at > 0 {
		before = rune(text[at-1])
	}
	if at+n < len(text) {
		after = rune(text[at+n])
	}
	last := len(open) - 1
	switch {
	case !unicode.IsSpace(before) && last >= 0 && open[last] == mark:
		return open[:last]
	case mark[0] == '_' && wordByte(before):
		return open
	case !unicode.IsSpace(after) || at+n == len(text):
		return append(open, mark)
	}
	return open
}

// wordByte reports whether a byte belongs to a word; those of other scripts do.
func wordByte(c rune) bool { return c >= 0x80 || unicode.IsLetter(c) || unicode.IsDigit(c) }

// mostOpen is the number of marks that are closed, so that a text of many marks does
// not become much longer.
const mostOpen = 8

// closeMarks closes emphasis and the address of a link at the end of a text.
func closeMarks(text string, open []string) string {
	if at := strings.LastIndex(text, "]("); at >= 0 && !strings.ContainsAny(text[at:], ") \n") {
		text += ")"
	}
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	for len(open) > 0 && strings.HasSuffix(text, open[len(open)-1]) {
		text = strings.TrimRightFunc(strings.TrimSuffix(text, open[len(open)-1]), unicode.IsSpace)
		open = open[:len(open)-1]
	}
	open = open[max(0, len(open)-mostOpen):]
	slices.Reverse(open)
	return text + strings.Join(open, "")
}
