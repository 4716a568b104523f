package chat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// hunkMarks is the choice among the hunks of an approval. Hunks count from 0 over
// all files.
type hunkMarks struct {
	at   int          // under the cursor
	left map[int]bool // left out
}

// Hunks returns the number of hunks from which a person can choose: 0 if there are
// fewer than two, or if a diff is incomplete.
func Hunks(d *protocol.Decision) (n int) {
	if d.Detail == nil || !d.Detail.Editable {
		return 0
	}
	for _, f := range d.Detail.Files {
		if f.Cut || f.Binary || f.Problem != "" {
			return 0
		}
		n += len(f.Hunks)
	}
	if n < 2 {
		return 0
	}
	return n
}

// fileLines renders the diffs of a call. A single file has no header, because the
// headline names it.
func fileLines(files []protocol.FilePreview, marks *hunkMarks, style markdown.Style) (out []line) {
	n := 0
	for i, f := range files {
		if len(files) > 1 {
			if i > 0 {
				out = append(out, line{"", -1})
			}
			out = append(out, line{"  " + strong.Render(verbs[f.Kind]+" "+termtext.OneLine(f.Path, 200)) + " " + tally(f), -1})
		}
		for j, h := range f.Hunks {
			switch {
			case marks != nil:
				out = append(out, line{hunkHead(h, n, marks), n})
			case j > 0:
				out = append(out, line{faint.Render("  ⋮"), -1})
			}
			out = append(out, hunkLines(h, n, marks != nil && marks.left[n], style)...)
			n++
		}
		out = append(out, styled(asking.Render, fileNotes(f, style.Width))...)
	}
	return out
}

// hunkHead renders the line above a hunk that can be left out.
func hunkHead(h protocol.Hunk, n int, marks *hunkMarks) string {
	cursor, box := "  ", "[x] "
	if n == marks.at {
		cursor = asking.Render("▸ ")
	}
	if marks.left[n] {
		box = "[ ] "
	}
	return cursor + strong.Render(box) + faint.Render(fmt.Sprintf("change %d, line %d", n+1, max(h.NewStart, h.OldStart, 1)))
}

// fileNotes says what the diff of a file does not show.
func fileNotes(f protocol.FilePreview, width int) (out []line) {
	if f.Problem != "" {
		out = append(out, plain("There is no diff: "+termtext.Printable(f.Problem), width)...)
	}
	if f.Binary {
		out = append(out, plain("The file is not text, so there is no diff.", width)...)
	}
	if missing := f.Added + f.Removed - changedLines(f.Hunks); f.Cut && missing > 0 {
		out = append(out, plain(fmt.Sprintf("The diff is too long: %s not in it.", counted(missing, "changed line")), width)...)
	} else if f.Cut {
		out = append(out, plain("The diff is too long and incomplete.", width)...)
	}
	return out
}

// hidesChanges reports whether a diff of a decision is missing or incomplete.
func hidesChanges(d *protocol.Decision) bool {
	if d.Detail == nil {
		return false
	}
	for _, f := range d.Detail.Files {
		if f.Cut || f.Binary || f.Problem != "" {
			return true
		}
	}
	return false
}

// changedLines counts the added and removed lines of hunks.
func changedLines(hunks []protocol.Hunk) (n int) {
	for _, h := range hunks {
		for l := range strings.Lines(h.Text) {
			if l[0] == '+' || l[0] == '-' {
				n++
			}
		}
	}
	return n
}

// hunkLines renders a hunk with line numbers: those of the new file, and of the old
// one for removed lines. A hunk that is left out is faint.
func hunkLines(h protocol.Hunk, n int, left bool, style markdown.Style) (out []line) {
	before, after := h.OldStart, h.NewStart
	digits := len(strconv.Itoa(max(h.OldStart+h.OldLines, h.NewStart+h.NewLines)))
	for l := range strings.SplitSeq(strings.TrimSuffix(termtext.Printable(h.Text), "\n"), "\n") {
		number, whole := "", l
		switch {
		case strings.HasPrefix(l, "+"):
			number, after = strconv.Itoa(after), after+1
		case strings.HasPrefix(l, "-"):
			number, before = strconv.Itoa(before), before+1
		case strings.HasPrefix(l, `\`):
			l = " (no newline at the end of the file)"
		default:
			number, before, after = strconv.Itoa(after), before+1, after+1
		}
		show := func(part string) string { return markdown.DiffPart(part, whole, style) }
		if left {
			show = func(part string) string { return faint.Render(part) }
		}
		out = append(out, numbered(number, digits, l, n, show, style.Width)...)
	}
	return out
}

// numbered renders a line of a diff after its number. A long line continues below,
// without a number and indented by the width of its mark. show styles its parts.
func numbered(number string, digits int, l string, n int, show func(string) string, width int) (out []line) {
	if l == "" {
		l = " "
	}
	mark, rest := l[:1], strings.ReplaceAll(l[1:], "\t", "    ")
	for part := range strings.SplitSeq(ansi.Hardwrap(rest, max(width-digits-5, 10), true), "\n") {
		out = append(out, line{faint.Render(fmt.Sprintf("  %*s ", digits, number)) + show(mark+" "+part), n})
		number, mark = "", " "
	}
	return out
}
