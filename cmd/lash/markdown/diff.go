package markdown

import (
	"strings"

	"lashd/internal/termtext"
)

// Diff renders a unified diff: added lines, removed lines, and the heads of hunks
// and files have colors.
func Diff(diff string, style Style) []string {
	return style.lines(diffRows(strings.Split(strings.TrimSuffix(termtext.Printable(diff), "\n"), "\n")))
}

// diffRows renders the lines of a diff.
func diffRows(lines []string) (out []row) {
	for _, l := range lines {
		out = append(out, expanded(row{{l, diffLook(l)}}))
	}
	return out
}

// diffLook returns the look of a line of a diff.
func diffLook(line string) look {
	switch {
	case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "diff "):
		return look{bold: true}
	case strings.HasPrefix(line, "@@"):
		return look{role: hunk}
	case strings.HasPrefix(line, "+"):
		return look{role: added}
	case strings.HasPrefix(line, "-"):
		return look{role: removed}
	case strings.HasPrefix(line, `\`), strings.HasPrefix(line, "index "), strings.HasPrefix(line, "# "):
		return look{role: muted}
	}
	return look{}
}

// DiffPart renders a part of a line of a diff. line is the whole line, whose first
// character says whether it was added or removed.
func DiffPart(part, line string, style Style) string {
	l := diffLook(line)
	if l.bold { // within a hunk, a line such as "--- a" was removed
		l = diffLook(line[:1])
	}
	return style.line(row{{termtext.Printable(part), l}})
}
