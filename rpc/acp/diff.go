package acp

import (
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// hunk is one changed part of a file, as text before and after. The protocol's
// diff content has no line numbers.
type hunk struct {
	path     string
	made     bool // the file is new
	old, new string
}

// changes returns a file change as diff content, one entry per hunk. It returns
// nil if lashd shortened the stored diff; the caller then shows the diff as text.
func (v *view) changes(c *protocol.FileChange) []sdk.ToolCallContent {
	hunks, whole := hunksOf(c.Diff)
	if !whole {
		return nil
	}
	var parts []sdk.ToolCallContent
	for _, h := range hunks {
		if h.made {
			parts = append(parts, sdk.ToolDiffContent(v.absolute(h.path), h.new))
		} else {
			parts = append(parts, sdk.ToolDiffContent(v.absolute(h.path), h.new, h.old))
		}
	}
	return parts
}

const (
	newFile  = "--- /dev/null"
	noFile   = "+++ /dev/null"
	oldName  = "--- a/"
	newName  = "+++ b/"
	noEnding = `\ No newline at end of file`
)

// diffReader parses a unified diff in the format that lashd writes: no timestamps,
// no rename headers, and a note instead of the rest if it was cut off.
type diffReader struct {
	hunks    []hunk
	file     hunk // path and made flag of the current file; copied into each of its hunks
	old, new int  // lines of the current hunk that have not been read yet
	last     byte // first byte of the previous body line: ' ', '-' or '+'
}

// hunksOf returns the hunks of a unified diff. whole is false if the diff was cut
// off or is not in lashd's format; the hunks are then useless.
func hunksOf(diff string) (hunks []hunk, whole bool) {
	var r diffReader
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, noEnding):
			r.dropNewline()
		case r.old > 0 || r.new > 0:
			if !r.body(line) {
				return nil, false
			}
		case !r.header(strings.TrimSuffix(line, "\n")):
			return nil, false
		}
	}
	return r.hunks, len(r.hunks) > 0 && r.old == 0 && r.new == 0
}

// header reads a line outside hunks and returns false if it is not a valid header.
// A hunk header appends a hunk that body then fills.
func (r *diffReader) header(line string) bool {
	name := func(prefix string) bool {
		path, ok := strings.CutPrefix(line, prefix)
		if ok {
			r.file.path = path
		}
		return ok
	}
	switch {
	case line == newFile:
		r.file.made = true
	case name(oldName):
		r.file.made = false
	case line == noFile || name(newName):
	default:
		extents := strings.Fields(line)
		if len(extents) != 4 || extents[0] != "@@" {
			return false
		}
		r.old, r.new = extent(extents[1]), extent(extents[2])
		r.hunks = append(r.hunks, r.file)
		return r.old >= 0 && r.new >= 0
	}
	return true
}

// extent returns the number of lines in a range of a hunk header, such as 3 for
// "-1,3" and 1 for "-1"; -1 if it is malformed.
func extent(s string) int {
	_, count, ok := strings.Cut(s, ",")
	if !ok {
		return 1
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return -1
	}
	return n
}

// body adds a line of a hunk to its old text, its new text or both, and returns
// false for an unknown mark.
func (r *diffReader) body(line string) bool {
	h := &r.hunks[len(r.hunks)-1]
	r.last = line[0]
	switch r.last {
	case ' ':
		h.old, h.new = h.old+line[1:], h.new+line[1:]
		r.old, r.new = r.old-1, r.new-1
	case '-':
		h.old, r.old = h.old+line[1:], r.old-1
	case '+':
		h.new, r.new = h.new+line[1:], r.new-1
	default:
		return false
	}
	return true
}

// dropNewline applies a "No newline at end of file" line: it removes the newline
// from the text that the previous line went to.
func (r *diffReader) dropNewline() {
	if len(r.hunks) == 0 {
		return
	}
	h := &r.hunks[len(r.hunks)-1]
	if r.last != '+' {
		h.old = strings.TrimSuffix(h.old, "\n")
	}
	if r.last != '-' {
		h.new = strings.TrimSuffix(h.new, "\n")
	}
}
