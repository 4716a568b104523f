package chat

import (
	"strings"
)

// markdown styles what people see of the marks of Markdown, line by line, and leaves the text as it is: it can be copied, and text
// that is still growing does not jump. It is no parser: a library that renders all of it would cost each start of lashd more than
// a start may take.
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

// spans styles code and strong words of a line.
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

// span writes the line up to the end of what stands between two marks, and gives the rest.
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
