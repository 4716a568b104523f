package cli

import "strings"

// continues reports whether an input of the code shell goes on with the next line:
// it has an open bracket, an open string of several lines, a backslash at its end,
// or a block, that is, a line that ends with a colon. A blank last line ends the
// input. The languages of cells look like Python in this.
func continues(text string) bool {
	lines := strings.Split(text, "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if len(lines) > 1 && last == "" {
		return false
	}
	in := scanned(text)
	return in.block || in.depth > 0 || len(in.quote) == 3 || strings.HasSuffix(last, "\\")
}

// codeScan is what continues needs to know of an input.
type codeScan struct {
	depth int    // open brackets
	quote string // of the string that is open at the end; "" if there is none
	block bool   // a line ends with a colon outside of brackets
	colon bool   // the newest character of the line that is not blank is such a colon
}

// scanned reads an input.
func scanned(text string) (s codeScan) {
	for i := 0; i < len(text); {
		i += s.next(text[i:])
	}
	s.block = s.block || s.colon
	return s
}

// next reads the first token of rest and returns its length.
func (s *codeScan) next(rest string) int {
	if s.quote != "" {
		return s.inString(rest)
	}
	switch c := rest[0]; c {
	case '#':
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			return n
		}
		return len(rest)
	case '"', '\'':
		s.colon, s.quote = false, rest[:1]
		if triple := strings.Repeat(s.quote, 3); strings.HasPrefix(rest, triple) {
			s.quote = triple
		}
		return len(s.quote)
	case '(', '[', '{':
		s.depth, s.colon = s.depth+1, false
	case ')', ']', '}':
		s.depth, s.colon = max(0, s.depth-1), false
	case ':':
		s.colon = s.depth == 0
	case '\n':
		s.block, s.colon = s.block || s.colon, false
	case ' ', '\t', '\r':
	default:
		s.colon = false
	}
	return 1
}

// inString reads the next character of a string and returns its length. A string
// with single quotes ends with its line.
func (s *codeScan) inString(rest string) int {
	switch {
	case strings.HasPrefix(rest, s.quote):
		n := len(s.quote)
		s.quote = ""
		return n
	case rest[0] == '\\' && len(rest) > 1:
		return 2
	case rest[0] == '\n' && len(s.quote) == 1:
		s.quote = ""
	}
	return 1
}
