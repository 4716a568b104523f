package filepoint

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff is the difference between two texts. Added and Removed count lines.
type Diff struct {
	Added, Removed int // lines
	// Binary means that a content is not text. The other fields are zero then.
	Binary bool
	// Text is a unified diff, valid UTF-8.
	Text string
}

// binaryPart is the number of leading bytes that decide whether a file is text, as in git.
const binaryPart = 8000

// Compare returns the diff between two contents of a file. was and is report whether the
// file exists before and after; a missing file appears as /dev/null in the diff.
func Compare(path string, before, after []byte, was, is bool) Diff {
	if isBinary(before) || isBinary(after) {
		return Diff{Binary: true}
	}
	from, to := "a/"+path, "b/"+path
	if !was {
		from = "/dev/null"
	}
	if !is {
		to = "/dev/null"
	}
	_, text, _ := bytes.Cut(diff.Diff(from, before, to, after), []byte("\n")) // the first line names both files once more
	d := Diff{Text: string(bytes.ToValidUTF8(text, []byte("\uFFFD")))}
	d.count(text)
	return d
}

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), binaryPart)], 0) >= 0
}

// count counts the added and removed lines inside hunks. Lines before the first hunk name
// the files.
func (d *Diff) count(text []byte) {
	inHunk := false
	for line := range bytes.Lines(text) {
		switch {
		case bytes.HasPrefix(line, []byte("@@")):
			inHunk = true
		case !inHunk:
		case line[0] == '+':
			d.Added++
		case line[0] == '-':
			d.Removed++
		}
	}
}
