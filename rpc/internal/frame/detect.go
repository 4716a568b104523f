package frame

import (
	"bufio"
	"strings"
)

// framing is how messages are separated on one connection.
type framing int

const (
	lines   framing = iota // one JSON value per line
	headers                // Content-Length headers, as in LSP
)

// preambles are the first bytes of other protocols, which get a specific error.
var preambles = []struct{ prefix, name string }{
	{"\x16\x03", "TLS"},
	{"SSH-", "SSH"},
	{"HTTP/", "HTTP"},
	{"PRI * HTTP/2", "HTTP/2"},
	{"GET ", "HTTP"}, {"HEAD ", "HTTP"}, {"POST ", "HTTP"}, {"PUT ", "HTTP"}, {"DELETE ", "HTTP"},
	{"CONNECT ", "HTTP"}, {"OPTIONS ", "HTTP"}, {"TRACE ", "HTTP"}, {"PATCH ", "HTTP"},
}

// detect determines the framing from the first bytes. It reads no more of them than necessary, so
// that it never waits for a byte that a correct peer would not send. Anything that is neither a
// header nor another protocol is a line.
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
	return headers, nil // its first line is too long, which readHeader reports
}

// foreign returns the name of the other protocol that the bytes begin with, or "".
func foreign(seen string) string {
	for _, p := range preambles {
		if strings.HasPrefix(seen, p.prefix) {
			return p.name
		}
	}
	return ""
}

// couldBeForeign reports whether more bytes may turn these into a preamble.
func couldBeForeign(seen string) bool {
	for _, p := range preambles {
		if strings.HasPrefix(p.prefix, seen) {
			return true
		}
	}
	return false
}

// isToken reports whether c may occur in the name of a header.
func isToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
