package frame

import (
	"bufio"
	"strings"
)

// framing is how messages are told apart on one connection.
type framing int

const (
	lines   framing = iota // one JSON value a line
	headers                // Content-Length, as in LSP
)

// preambles are the first bytes of peers that speak something else.
var preambles = []struct{ prefix, name string }{
	{"\x16\x03", "TLS"},
	{"SSH-", "SSH"},
	{"HTTP/", "HTTP"},
	{"PRI * HTTP/2", "HTTP/2"},
	{"GET ", "HTTP"}, {"HEAD ", "HTTP"}, {"POST ", "HTTP"}, {"PUT ", "HTTP"}, {"DELETE ", "HTTP"},
	{"CONNECT ", "HTTP"}, {"OPTIONS ", "HTTP"}, {"TRACE ", "HTTP"}, {"PATCH ", "HTTP"},
}

// detect looks at the first bytes, and at no more of them than it needs, so that it never waits for a byte which a
// correct peer would not send. What is neither a header nor foreign is a line.
func detect(r *bufio.Reader) (framing, error) {
	for n := 1; n <= maxHeaderLine; n++ {
		seen, err := r.Peek(n)
		if len(seen) < n {
			if len(seen) == 0 {
				return lines, err
			}
			return lines, nil
		}
		if name := foreign(string(seen)); name != "" {
			return lines, foreignProtocol(name)
		}
		if c := seen[n-1]; c == ':' && n > 1 {
			return headers, nil
		} else if !isToken(c) && !couldBeForeign(string(seen)) {
			return lines, nil
		}
	}
	return headers, nil // and its first line is too long
}

func foreign(seen string) string {
	for _, p := range preambles {
		if strings.HasPrefix(seen, p.prefix) {
			return p.name
		}
	}
	return ""
}

func couldBeForeign(seen string) bool {
	for _, p := range preambles {
		if strings.HasPrefix(p.prefix, seen) {
			return true
		}
	}
	return false
}

// isToken reports whether c may stand in the name of a header as our peers write them.
func isToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
