package cli

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// splitter is a Writer that cuts a stream into messages. It tells each of their bodies, and passes them on whole, several at
// once if they come so. A stream that is not framed as lashd does it is swallowed from there on.
type splitter struct {
	each func(body []byte, headers bool)
	out  io.Writer // may be io.Discard
	rest []byte
	lost bool
}

// maxHeld is more than the longest message that a daemon takes or sends.
const maxHeld = 64 << 20

var errNotFramed = errors.New("a message has no Content-Length that can be understood")

func (s *splitter) Write(p []byte) (int, error) {
	if s.lost {
		return len(p), nil
	}
	s.rest = append(s.rest, p...)
	done := 0
	for {
		body, end, err := frame(s.rest[done:])
		if s.lost = err != nil || len(s.rest)-done > maxHeld; s.lost {
			break
		}
		if end == 0 {
			break
		}
		s.each(s.rest[done+body:done+end], body > 0)
		done += end
	}
	_, err := s.out.Write(s.rest[:done])
	s.rest = append(s.rest[:0], s.rest[done:]...)
	return len(p), err
}

// frame finds the first message in data: where its body begins and where it ends. An end of 0 means that more is to come.
func frame(data []byte) (body, end int, err error) {
	if len(data) == 0 {
		return 0, 0, nil
	}
	if !isHeader(data[0]) {
		return 0, bytes.IndexByte(data, '\n') + 1, nil
	}
	head, separator := bytes.Index(data, []byte("\n\r\n")), 3
	if bare := bytes.Index(data, []byte("\n\n")); bare >= 0 && (head < 0 || bare < head) {
		head, separator = bare, 2
	}
	if head < 0 {
		return 0, 0, nil
	}
	length, err := contentLength(string(data[:head]))
	if body = head + separator; err != nil || len(data) < body+length {
		return 0, 0, err
	}
	return body, body + length, nil
}

// isHeader tells a header from a line: no JSON-RPC message begins with a letter.
func isHeader(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

func contentLength(header string) (int, error) {
	for line := range strings.SplitSeq(header, "\n") {
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 30)
			return int(n), err
		}
	}
	return 0, errNotFramed
}
