package workspace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"lashd/engine/attachment"
	"lashd/rpc/protocol"
)

const (
	// Limits of read: lines and bytes of a result, and characters of a line.
	readLines = 2000
	readBytes = 50 << 10
	lineChars = 2000
	// sniff is the number of leading bytes that decide whether a file is text.
	sniff = 8000
)

// describeRead is the description of read that the model reads.
const describeRead = "Read a text file of the workspace. Each line is returned as number, tab, text; the numbers are not part " +
	"of the file, and plain leaves them out. A call returns at most 2000 lines and 50 KB, and says how to continue. An image (PNG, JPEG, GIF, WebP) or a PDF document is " +
	"returned as a whole, for you to look at."

// readArgs are the arguments of read.
type readArgs struct {
	Path   string `json:"path" jsonschema:"file to read, relative to the workspace or absolute inside it"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line to read, counted from 1 (default: 1)"`
	Limit  int    `json:"limit,omitempty" jsonschema:"number of lines (default: 2000)"`
	Plain  bool   `json:"plain,omitempty" jsonschema:"return the text as it is, for code: without line numbers and notes"`
}

// readValue is the structured result of read. Lines count from 1.
type readValue struct {
	Path  string `json:"path"`
	First int    `json:"firstLine"`
	Last  int    `json:"lastLine"`
	// Next is the line at which to continue. 0: the end was reached.
	Next int `json:"nextOffset,omitempty"`
}

// read is the read tool. It reads the file as a stream, so large files cost only the time
// to skip lines. It rejects binary files, and an offset beyond the end.
// A result ends at readLines lines or readBytes bytes and then says where to continue.
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
	if kind := attachment.Type(start); strings.HasPrefix(kind, "image/") || kind == attachment.PDF {
		return readWhole(at, kind, in)
	}
	if binary(start) {
		return protocol.ToolOutput{}, refuse("binary_file", "%s is a binary file of %d bytes; read returns only text, images and PDF documents", a.Path, at.info.Size())
	}
	w := window{first: cmp.Or(a.Offset, 1), limit: min(cmp.Or(a.Limit, readLines), readLines), plain: a.Plain}
	if err := w.fill(ctx, in); err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("read %s: %w", a.Path, err)
	}
	if w.seen < w.first && w.first > 1 {
		return protocol.ToolOutput{}, refuse("past_end", "line %d is past the end: %s has %d lines", w.first, a.Path, w.seen)
	}
	value := readValue{Path: at.path(), First: min(w.first, w.seen), Last: w.seen}
	if w.more {
		value.Next = w.seen + 1
	}
	switch {
	case w.plain:
	case w.more:
		fmt.Fprintf(&w.text, "[There are more lines. Continue with offset %d.]\n", value.Next)
	case w.seen == 0:
		w.text.WriteString("[The file is empty.]\n")
	}
	return withValue(w.text.String(), value)
}

// readWhole returns a file of a kind that models read as an attachment. kind is what the beginning of the file shows.
func readWhole(at place, kind string, in io.Reader) (protocol.ToolOutput, error) {
	data, err := io.ReadAll(io.LimitReader(in, attachment.MaxPDF+1))
	if err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("read %s: %w", at.path(), err)
	}
	if _, err := attachment.Checked(kind, data); err != nil {
		return protocol.ToolOutput{}, refuse("unreadable_file", "%s %v", at.path(), err)
	}
	out, err := withValue(fmt.Sprintf("[%s is attached: %s, %d bytes]", at.path(), kind, len(data)), readValue{Path: at.path()})
	out.Attachments = []protocol.Attachment{{Name: path.Base(at.path()), Type: kind, Data: data}}
	return out, err
}

// binary reports whether the beginning of a file has a NUL byte.
func binary(start []byte) bool { return bytes.IndexByte(start, 0) >= 0 }

// window collects the lines of a result.
type window struct {
	// first is the number of the first line to return, limit the maximum number of lines.
	first, limit int
	// seen is the number of lines read so far.
	seen int
	// plain means that lines are returned without their numbers.
	plain bool
	// more means that the file continues after the window.
	more bool
	text strings.Builder
}

// fill skips the lines before first and collects lines up to the limits. more is set if the
// file continues.
// It returns whole lines only: a line that would exceed readBytes is left for the next call,
// unless it is the first one.
func (w *window) fill(ctx context.Context, in *bufio.Reader) error {
	for w.seen < w.first-1 {
		// Skipping can take long in a large file, so check for cancellation.
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
		out := shown(line, left)
		if !w.plain {
			out = fmt.Sprintf("%6d\t%s", w.seen+1, out)
		}
		if n > 0 && w.text.Len()+len(out) > readBytes {
			w.more = true
			return nil
		}
		w.text.WriteString(out)
		w.seen++
	}
}

// shown returns a line as read returns it. left is the number of bytes that readLine cut;
// more may be cut here, at a character boundary.
// Bytes that are not UTF-8 become U+FFFD, and the end of a Windows line is removed.
func shown(line []byte, left int) string {
	text, cut := clip(strings.ToValidUTF8(strings.TrimSuffix(string(line), "\r"), "\uFFFD"), lineChars)
	if left += cut; left > 0 {
		return fmt.Sprintf("%s [%d more bytes in this line]\n", text, left)
	}
	return text + "\n"
}

// clip returns the first n characters of s and the number of bytes that it cut.
func clip(s string, n int) (kept string, left int) {
	for i := range s {
		if n == 0 {
			return s[:i], len(s) - i
		}
		n--
	}
	return s, 0
}

// readLine returns the first keep bytes of the next line without its newline, and the
// number of bytes that it cut.
// It needs memory only for the kept bytes. io.EOF means that there is no further line; a last
// line without a newline counts as a line.
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

// content returns the whole file at p, up to maxFile bytes. It returns errMoved if the file
// grows beyond that while it is read. Changes to the file during the read are detected
// later, by change.unchanged.
// The place must be a regular file, which open checks.
func (v *view) content(p place) ([]byte, error) {
	f, err := v.open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if p.info.Size() > maxFile {
		return nil, &fault{protocol.FailResourceLimit, "too_large", fmt.Sprintf("the file has %d bytes; the limit is %d", p.info.Size(), maxFile)}
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
