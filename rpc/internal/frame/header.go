package frame

import (
	"errors"
	"io"
	"strconv"
	"strings"
)

// Limits of a header. A longer one ends the connection.
const (
	maxHeaderLine  = 1 << 10 // bytes
	maxHeaderLines = 16      // lines, apart from the empty one
)

// readHeader reads the header up to the empty line and returns the length of the body. It fails
// with io.EOF only before the first byte.
func (r *reader) readHeader() (int, error) {
	length := -1
	for n := 0; ; n++ {
		line, err := r.headerLine()
		if err == io.EOF && (n > 0 || line != "") {
			return 0, io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		if line == "" {
			break
		}
		if n == maxHeaderLines {
			return 0, badFrame("The header has more than 16 lines; send Content-Length, an empty line and the body.")
		}
		if length, err = r.headerField(line, length); err != nil {
			return 0, err
		}
	}
	if length < 0 {
		return 0, badFrame("The header has no Content-Length; send it before each message.")
	}
	return length, nil
}

// headerLine returns the next line without its line break. With io.EOF it returns the incomplete
// line.
func (r *reader) headerLine() (string, error) {
	var line []byte
	for {
		c, err := r.src.ReadByte()
		if err != nil {
			return string(line), err
		}
		if c == '\n' {
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		if line = append(line, c); len(line) > maxHeaderLine {
			return "", badFrame("A header line is longer than 1024 bytes.")
		}
	}
}

// headerField returns the length as known after line; length is the one known before, or -1. Other
// headers are checked for their form and ignored.
func (r *reader) headerField(line string, length int) (int, error) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || name == "" || strings.ContainsFunc(name, func(c rune) bool { return c > '~' || !isToken(byte(c)) }) {
		return 0, badFrame("A header line must be a name, a colon and a value.")
	}
	if strings.ContainsFunc(value, func(c rune) bool { return c != '\t' && (c < ' ' || c > '~') }) {
		return 0, badFrame("A header value must be printable ASCII.")
	}
	if !strings.EqualFold(name, "Content-Length") {
		return length, nil
	}
	if length >= 0 {
		return 0, badFrame("The header has two Content-Length lines; send one.")
	}
	return r.parseLength(strings.Trim(value, " \t"))
}

// parseLength parses the value of Content-Length. A length over the limit is a frameTooLarge
// problem.
func (r *reader) parseLength(digits string) (int, error) {
	if digits == "" || strings.ContainsFunc(digits, func(c rune) bool { return c < '0' || c > '9' }) {
		return 0, badFrame("Content-Length must be a decimal number of bytes.")
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if errors.Is(err, strconv.ErrRange) || n > uint64(r.max) {
		return 0, frameTooLarge(r.max)
	}
	return int(n), nil
}
