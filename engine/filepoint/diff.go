package filepoint

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff is how a text became another one.
type Diff struct {
	Added, Removed int  // lines
	Binary         bool // it is no text, and there is nothing more to say
	Text           string
}

// binaryPart is how much of a file decides whether it is text, as in git.
const binaryPart = 8000

// Compare makes the diff of two contents of a file. One that is not there is compared as /dev/null.
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

// count counts the lines of hunks; those before the first one name the files.
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
