package markdown

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	extension "github.com/yuin/goldmark/extension/ast"
)

// Limits of the columns of a table.
const (
	leastColumn = 8   // columns are not made narrower
	mostColumn  = 400 // of a terminal whose width is not known
)

// cells is a row of a table. A cell may have several lines.
type cells [][]row

// table renders a table that fits the width. If its columns would be too narrow, it
// renders each row as a list of the header with the cell.
func (p painter) table(n *extension.Table) []row {
	var all []cells
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		l := look{bold: r.Kind() == extension.KindTableHeader}
		var line cells
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			line = append(line, p.inlines(c, l))
		}
		all = append(all, line)
	}
	widths, ok := p.style.widths(all)
	if !ok {
		return records(all)
	}
	return grid(all, widths, n.Alignments)
}

// widths returns the widths of the columns. The widest ones are made narrower until
// the table fits. It reports whether that is possible.
func (s Style) widths(all []cells) ([]int, bool) {
	natural := make([]int, len(all[0]))
	for _, r := range all {
		for i, c := range r {
			for _, l := range c {
				natural[i] = min(max(natural[i], l.width()), mostColumn)
			}
		}
	}
	room := s.Width - 3*(len(natural)-1)
	for s.Width > 0 && sum(natural) > room {
		widest := 0
		for i, w := range natural {
			if w > natural[widest] {
				widest = i
			}
		}
		if natural[widest] <= leastColumn {
			return nil, false
		}
		natural[widest]--
	}
	return natural, true
}

// sum adds numbers.
func sum(all []int) (n int) {
	for _, a := range all {
		n += a
	}
	return n
}

// width returns the number of columns of a row.
func (r row) width() (n int) {
	for _, p := range r {
		n += ansi.StringWidth(p.text)
	}
	return n
}

// grid renders a table with lines between the columns, and between the rows if a
// cell has several lines.
func grid(all []cells, widths []int, align []extension.Alignment) (out []row) {
	var rows [][]row
	tall := false
	for _, r := range all {
		lines := gridRow(r, widths, align)
		tall = tall || len(lines) > 1
		rows = append(rows, lines)
	}
	for i, lines := range rows {
		if i == 1 || tall && i > 1 {
			out = append(out, crossing(widths))
		}
		out = append(out, lines...)
	}
	if len(rows) == 1 {
		out = append(out, crossing(widths))
	}
	return out
}

// crossing renders the line below a row.
func crossing(widths []int) row {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return row{{strings.Join(parts, "─┼─"), look{role: muted}}}
}

// gridRow renders a row of a table as lines of the same columns.
func gridRow(r cells, widths []int, align []extension.Alignment) (out []row) {
	wrapped := make([][]row, len(widths))
	height := 1
	for i := range widths {
		if i < len(r) {
			for _, l := range r[i] {
				wrapped[i] = append(wrapped[i], wrap(l, widths[i])...)
			}
		}
		height = max(height, len(wrapped[i]))
	}
	for y := range height {
		var line row
		for i, w := range widths {
			var cell row
			if y < len(wrapped[i]) {
				cell = wrapped[i][y]
			}
			if i > 0 {
				line = append(line, span{" │ ", look{role: muted}})
			}
			line = append(line, padded(cell, w, align[i])...)
		}
		out = append(out, line)
	}
	return out
}

// padded fills a cell with spaces to a width.
func padded(cell row, width int, align extension.Alignment) (out row) {
	room := max(0, width-cell.width())
	left := 0
	switch align {
	case extension.AlignRight:
		left = room
	case extension.AlignCenter:
		left = room / 2
	}
	out = append(out, span{strings.Repeat(" ", left), look{}})
	out = append(out, cell...)
	return append(out, span{strings.Repeat(" ", room-left), look{}})
}

// records renders the rows of a table below each other, for a terminal that is too
// narrow for its columns.
func records(all []cells) (out []row) {
	for i, r := range all[1:] {
		if i > 0 {
			out = append(out, nil)
		}
		for j, c := range r {
			for k, l := range c {
				if k == 0 && j < len(all[0]) && len(all[0][j]) > 0 {
					l = append(append(append(row(nil), all[0][j][0]...), span{": ", look{role: muted}}), l...)
				}
				out = append(out, l)
			}
		}
	}
	if len(all) == 1 {
		for _, c := range all[0] {
			out = append(out, c...)
		}
	}
	return out
}

// wrap breaks a row into rows of at most width columns, between words if it can.
func wrap(r row, width int) (out []row) {
	w := wrapper{width: width}
	for _, p := range r {
		for _, word := range strings.SplitAfter(p.text, " ") {
			w.add(word, p.look)
		}
	}
	return append(w.rows, trimmed(w.row))
}

// wrapper is the state of wrap.
type wrapper struct {
	width, used int
	row         row
	rows        []row
}

// add puts a word, with the space after it, in the row or below it. A word that is
// wider than a row is broken.
func (w *wrapper) add(word string, l look) {
	bare := ansi.StringWidth(strings.TrimRight(word, " "))
	if w.used > 0 && w.used+bare > w.width && bare <= w.width {
		w.next()
	}
	for bare > w.width-w.used && bare > 0 {
		head := ansi.Truncate(word, w.width-w.used, "")
		if head == "" && w.used > 0 {
			w.next()
			continue
		}
		if head == "" {
			break // a character is wider than the row
		}
		w.row = append(w.row, span{head, l})
		word = word[len(head):]
		bare = ansi.StringWidth(strings.TrimRight(word, " "))
		w.next()
	}
	if w.used > 0 || strings.TrimSpace(word) != "" {
		w.row = append(w.row, span{word, l})
		w.used += ansi.StringWidth(word)
	}
}

// next begins a row.
func (w *wrapper) next() {
	w.rows, w.row, w.used = append(w.rows, trimmed(w.row)), nil, 0
}
