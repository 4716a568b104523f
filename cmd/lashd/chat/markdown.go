package chat

import (
	"strings"
)

// markdown styles headings, code and bold text line by line. It keeps the text and
// its marks unchanged, so that the text can be copied and streamed text does not
// move. It is not a full parser: linking a Markdown library would make every start
// of lashd slower.
func markdown(text string) string {
	lines := strings.Split(text, "\n")
	fenced := false
	for i, l := range lines {
		bare := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(bare, "```"):
			fenced = !fenced
			lines[i] = faint.Render(l)
		case fenced:
			lines[i] = mine.Render(l)
		case strings.HasPrefix(bare, "#"):
			lines[i] = strong.Render(l)
		default:
			lines[i] = spans(l)
		}
	}
	return strings.Join(lines, "\n")
}

// spans styles the code and the bold words of a line.
func spans(line string) string {
	var out strings.Builder
	for line != "" {
		code, bold := strings.Index(line, "`"), strings.Index(line, "**")
		switch {
		case code >= 0 && (bold < 0 || code < bold):
			line = span(&out, line, code, "`", mine.Render)
		case bold >= 0:
			line = span(&out, line, bold, "**", strong.Render)
		default:
			out.WriteString(line)
			return out.String()
		}
	}
	return out.String()
}

// span writes line up to the end of the text between two marks, the first of which
// is at offset at. It returns the rest of the line.
func span(out *strings.Builder, line string, at int, mark string, style func(...string) string) string {
	out.WriteString(line[:at])
	inside, rest, closed := strings.Cut(line[at+len(mark):], mark)
	if !closed || inside == "" {
		out.WriteString(mark)
		return line[at+len(mark):]
	}
	out.WriteString(style(mark + inside + mark))
	return rest
}
