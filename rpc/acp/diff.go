package acp

import (
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// hunk is a part of a file as it was and as it is.
type hunk struct {
	path     string
	made     bool // the file is new
	old, new string
}

// changes are the parts of a change, as editors show them. There are none where the change was too long to be kept whole.
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

// diffReader reads a unified diff, as lashd writes it.
type diffReader struct {
	hunks    []hunk
	file     hunk // what the next hunks have in common
	old, new int  // lines of the hunk that are still to come
	last     byte // mark of the line before
}

// hunksOf are the parts of a unified diff; whole is false if something was left out of it.
func hunksOf(diff string) (hunks []hunk, whole bool) {
	var r diffReader
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, noEnding):
			r.unended()
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

// extent is how many lines a part has.
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

// unended takes back the end of the last line.
func (r *diffReader) unended() {
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
