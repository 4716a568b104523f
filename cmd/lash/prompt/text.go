package prompt

import (
	"slices"
	"strings"
)

// text is a text as its lines, at least one. Edits make new lines, so that older
// texts stay as they were.
type text []*line

// pos is a place in a text: before a cell of a line.
type pos struct{ line, cell int }

// before reports whether p is before q.
func (p pos) before(q pos) bool {
	return p.line < q.line || p.line == q.line && p.cell < q.cell
}

// parse cuts a text into lines. Of the three kinds of newlines, each counts once.
func parse(plain string) (t text) {
	plain = strings.ReplaceAll(strings.ReplaceAll(plain, "\r\n", "\n"), "\r", "\n")
	for l := range strings.SplitSeq(plain, "\n") {
		t = append(t, &line{cells: segment(l)})
	}
	return t
}

// write returns a text as a string. of gives the text of a block.
func (t text) write(of func(*Block) string) string {
	var b strings.Builder
	for i, l := range t {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, c := range l.cells {
			if c.block != nil {
				b.WriteString(of(c.block))
			} else {
				b.WriteString(c.text)
			}
		}
	}
	return b.String()
}

// blocks returns all blocks in their order.
func (t text) blocks() (all []*Block) {
	for _, l := range t {
		for _, c := range l.cells {
			if c.block != nil {
				all = append(all, c.block)
			}
		}
	}
	return all
}

// end returns the place after the last cell.
func (t text) end() pos {
	last := len(t) - 1
	return pos{last, len(t[last].cells)}
}

// between returns the text from one place to another.
func (t text) between(from, to pos) text {
	if from.line == to.line {
		return text{{cells: t[from.line].cells[from.cell:to.cell]}}
	}
	part := text{{cells: t[from.line].cells[from.cell:]}}
	part = append(part, t[from.line+1:to.line]...)
	return append(part, &line{cells: t[to.line].cells[:to.cell]})
}

// changed returns the lines that replace those of from and to if new takes the
// place of the text between them, and the place after new in the whole text.
func (t text) changed(from, to pos, new text) (lines text, after pos) {
	head, tail := t[from.line].cells[:from.cell], t[to.line].cells[to.cell:]
	lines, last := slices.Clone(new), len(new)-1
	lines[0] = &line{cells: join(head, new[0].cells)}
	at := offset(lines[last].cells, len(lines[last].cells))
	lines[last] = &line{cells: join(lines[last].cells, tail)}
	return lines, pos{from.line + last, boundary(lines[last].cells, at)}
}

// followed returns a text followed by another.
func (t text) followed(by text) text {
	last := len(t) - 1
	seam := &line{cells: join(t[last].cells, by[0].cells)}
	return slices.Concat(t[:last], text{seam}, by[1:])
}

// trimmed returns a text without the white space around it. White space in blocks
// stays.
func (t text) trimmed() text {
	from, to := pos{}, t.end()
	for from.before(to) && t.spaceAfter(from) {
		from = t.right(from)
	}
	for from.before(to) && t.spaceBefore(to) {
		to = t.left(to)
	}
	return t.between(from, to)
}

// spaceAfter reports whether white space, such as a newline, follows a place.
func (t text) spaceAfter(p pos) bool {
	cells := t[p.line].cells
	return p.cell == len(cells) || cells[p.cell].space()
}

// spaceBefore reports whether a place is after white space or at the beginning of a
// line.
func (t text) spaceBefore(p pos) bool {
	return p.cell == 0 || t[p.line].cells[p.cell-1].space()
}

// left returns the place of the cell or of the newline before p.
func (t text) left(p pos) pos {
	switch {
	case p.cell > 0:
		return pos{p.line, p.cell - 1}
	case p.line > 0:
		return t.lineEnd(pos{line: p.line - 1})
	}
	return p
}

// right returns the place after the cell or the newline at p.
func (t text) right(p pos) pos {
	switch {
	case p.cell < len(t[p.line].cells):
		return pos{p.line, p.cell + 1}
	case p.line < len(t)-1:
		return pos{p.line + 1, 0}
	}
	return p
}

// wordLeft returns the beginning of the word before p. Whether a cell belongs to
// the word decides inside; what is between words is skipped first, also newlines.
func (t text) wordLeft(p pos, inside func(cell) bool) pos {
	for p.line > 0 && !slices.ContainsFunc(t[p.line].cells[:p.cell], inside) {
		p = t.lineEnd(pos{line: p.line - 1})
	}
	cells := t[p.line].cells
	for p.cell > 0 && !inside(cells[p.cell-1]) {
		p.cell--
	}
	for p.cell > 0 && inside(cells[p.cell-1]) {
		p.cell--
	}
	return p
}

// wordRight returns the end of the word after p.
func (t text) wordRight(p pos, inside func(cell) bool) pos {
	for p.line < len(t)-1 && !slices.ContainsFunc(t[p.line].cells[p.cell:], inside) {
		p = pos{p.line + 1, 0}
	}
	cells := t[p.line].cells
	for p.cell < len(cells) && !inside(cells[p.cell]) {
		p.cell++
	}
	for p.cell < len(cells) && inside(cells[p.cell]) {
		p.cell++
	}
	return p
}

// notSpace is the wide sense of a word, that of Ctrl-W: anything but white space.
func notSpace(c cell) bool { return !c.space() }

// lineStart and lineEnd return the ends of the line of p.
func (t text) lineStart(p pos) pos { return pos{p.line, 0} }
func (t text) lineEnd(p pos) pos   { return pos{p.line, len(t[p.line].cells)} }
