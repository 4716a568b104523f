package cli

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// splitter is a Writer that splits a stream of JSON-RPC into messages, with
// Content-Length headers or one per line. It calls each with the body of every
// message and then writes whole messages to out, several at once if they arrive
// together. After a framing error it drops the rest of the stream: message
// boundaries are unknown then. A splitter is not safe for concurrent use.
type splitter struct {
	each func(body []byte, headers bool)
	out  io.Writer // may be io.Discard
	rest []byte    // the beginning of an incomplete message
	lost bool      // a framing error has occurred
}

// maxHeld is the limit for an incomplete message, in bytes. It exceeds the longest
// message that a daemon accepts or sends.
const maxHeld = 64 << 20

// errNotFramed means that a message begins with headers but has no valid
// Content-Length.
var errNotFramed = errors.New("message without a valid Content-Length")

// Write implements io.Writer. It never returns a short count: an incomplete
// message stays in rest until its end arrives.
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

// frame finds the first message in data and returns the offsets of the start and
// the end of its body. An end of 0 means that the message is incomplete. A body at
// offset 0 has no headers.
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

// isHeader reports whether a message that begins with c has headers: a JSON-RPC
// message without headers does not begin with a letter.
func isHeader(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

// contentLength returns the value of the Content-Length header, at most 2^30-1.
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
