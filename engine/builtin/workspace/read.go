package workspace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

const (
	readLines = 2000
	readBytes = 50 << 10
	lineChars = 2000
	sniff     = 8000 // bytes that are looked at to tell text from binary
)

const describeRead = "Read a text file of the workspace. Lines come numbered (number, tab, text); the numbers are not part " +
	"of the file. At most 2000 lines and 50 KB come at once, and the answer says how to go on."

type readArgs struct {
	Path   string `json:"path" jsonschema:"file to read, relative to the workspace or absolute inside it"`
	Offset int    `json:"offset,omitempty" jsonschema:"line to start with; the first is 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines; 2000 if not given"`
}

type readValue struct {
	Path  string `json:"path"`
	First int    `json:"firstLine"`
	Last  int    `json:"lastLine"`
	Next  int    `json:"nextOffset,omitempty"` // 0: that was the end
}

func (f *files) read(ctx context.Context, req request[readArgs]) (protocol.ToolOutput, error) {
	a := req.args
	if a.Offset < 0 || a.Limit < 0 {
		return protocol.ToolOutput{}, refuse("invalid_arguments", "offset and limit must not be negative")
	}
	at, err := req.view.locate(a.Path)
	if err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("read %s: %w", a.Path, err)
	}
	defer at.dir.close()
	file, err := req.view.open(at)
	if err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("read %s: %w", a.Path, err)
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 64<<10)
	start, err := in.Peek(sniff)
	if err != nil && !errors.Is(err, io.EOF) {
		return protocol.ToolOutput{}, fmt.Errorf("read %s: %w", a.Path, err)
	}
	if binary(start) {
		return protocol.ToolOutput{}, refuse("binary_file", "%s is a binary file of %d bytes, and read shows text only", a.Path, at.info.Size())
	}
	w := window{first: cmp.Or(a.Offset, 1), limit: min(cmp.Or(a.Limit, readLines), readLines)}
	if err := w.fill(ctx, in); err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("read %s: %w", a.Path, err)
	}
	if w.seen < w.first && w.first > 1 {
		return protocol.ToolOutput{}, refuse("past_end", "line %d is past the end: %s has %d lines", w.first, a.Path, w.seen)
	}
	value := readValue{Path: at.path(), First: min(w.first, w.seen), Last: w.seen}
	switch {
	case w.more:
		value.Next = w.seen + 1
		fmt.Fprintf(&w.text, "[There are more lines. Go on with offset %d.]\n", value.Next)
	case w.seen == 0:
		w.text.WriteString("[The file is empty.]\n")
	}
	return withValue(w.text.String(), value)
}

func binary(start []byte) bool { return bytes.IndexByte(start, 0) >= 0 }

// window collects the lines to show.
type window struct {
	first, limit int
	seen         int // lines read so far
	more         bool
	text         strings.Builder
}

func (w *window) fill(ctx context.Context, in *bufio.Reader) error {
	for w.seen < w.first-1 {
		// A file may be far bigger than what is shown of it.
		if w.seen%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		_, _, err := readLine(ctx, in, 0)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		w.seen++
	}
	for n := 0; ; n++ {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if n == w.limit || w.text.Len() >= readBytes {
			w.more = true
			return nil
		}
		line, left, err := readLine(ctx, in, lineChars*utf8.UTFMax)
		if err != nil {
			return err
		}
		shown := numbered(w.seen+1, line, left)
		if n > 0 && w.text.Len()+len(shown) > readBytes {
			w.more = true
			return nil
		}
		w.text.WriteString(shown)
		w.seen++
	}
}

func numbered(n int, line []byte, left int) string {
	text, cut := clip(strings.ToValidUTF8(strings.TrimSuffix(string(line), "\r"), "\uFFFD"), lineChars)
	if left += cut; left > 0 {
		return fmt.Sprintf("%6d\t%s [%d bytes more in this line]\n", n, text, left)
	}
	return fmt.Sprintf("%6d\t%s\n", n, text)
}

// clip keeps the first n characters and tells how many bytes that leaves out.
func clip(s string, n int) (kept string, left int) {
	for i := range s {
		if n == 0 {
			return s[:i], len(s) - i
		}
		n--
	}
	return s, 0
}

// readLine returns the first keep bytes of the next line without its newline, and how many bytes it left out.
func readLine(ctx context.Context, in *bufio.Reader, keep int) (line []byte, left int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(part) == 0 && errors.Is(err, io.EOF) && line == nil && left == 0 {
			return nil, 0, io.EOF
		}
		text := bytes.TrimSuffix(part, []byte("\n"))
		n := min(len(text), keep-len(line))
		line = append(line, text[:n]...)
		left += len(text) - n
		switch {
		case err == nil || errors.Is(err, io.EOF):
			return line, left, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, 0, err
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
	}
}

// content is the whole file at p, for tools that need all of it.
func (v *view) content(p place) ([]byte, error) {
	f, err := v.open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if p.info.Size() > maxFile {
		return nil, &fault{protocol.FailResourceLimit, "too_large", fmt.Sprintf("the file has %d bytes, the limit is %d", p.info.Size(), maxFile)}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, errMoved
	}
	return data, nil
}
