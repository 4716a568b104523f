package prompt

import (
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"

	"lashd/internal/termtext"
)

// tabWidth is the number of columns in which a tab is shown. It does not depend on
// the column, so a line can be wrapped without knowing what is before it.
const tabWidth = 4

// cell is what the cursor moves over in one step: a grapheme cluster, or a block.
type cell struct {
	text  string // of a cluster, as it was entered
	width int    // columns on the screen
	block *Block // nil: a cluster
}

// size returns the length of a cell in the units of line.offset.
func (c cell) size() int {
	if c.block != nil {
		return 1
	}
	return len(c.text)
}

// space reports whether a cell is white space.
func (c cell) space() bool {
	return c.block == nil && strings.TrimSpace(c.text) == ""
}

// word reports whether a cell belongs to a word: letters, digits, marks, and
// underscores.
func (c cell) word() bool {
	if c.block != nil {
		return true
	}
	for _, r := range c.text {
		return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
	}
	return false
}

// shown returns a cell as it looks on the screen. Characters that control a
// terminal become visible escapes, here only: the text keeps them.
func (c cell) shown() string {
	switch {
	case c.block != nil:
		return blockStyle.Render(c.block.Label())
	case c.text == "\t":
		return strings.Repeat(" ", tabWidth)
	}
	return termtext.Printable(c.text)
}

// plain reports whether the boundaries around a cell are certain: its single
// character neither joins with others nor depends on those before it. This is true
// of ASCII and of most Chinese characters.
func (c cell) plain() bool {
	if c.block != nil || len(c.text) == 0 {
		return false
	}
	if len(c.text) == 1 {
		return c.text[0] < 0x80
	}
	r := []rune(c.text)
	return len(r) == 1 && r[0] >= 0x3400 && r[0] <= 0x9fff
}

// line is a logical line of the text without its newline. It is never changed:
// an edit makes new lines, so that undo can keep the old ones.
type line struct {
	cells []cell

	width int   // for which rows was computed; 0: it was not
	rows  []int // index of the first cell of each row
}

// segment cuts a text without newlines into cells.
func segment(text string) []cell {
	cells := make([]cell, 0, len(text))
	for next := graphemes.FromString(text); next.Next(); {
		c := cell{text: next.Value(), width: 1}
		switch {
		case c.text == "\t":
			c.width = tabWidth
		case len(c.text) > 1 || c.text[0] < ' ' || c.text[0] == 0x7f:
			c.width = ansi.StringWidth(termtext.Printable(c.text))
		}
		cells = append(cells, c)
	}
	return cells
}

// join returns the cells of a followed by those of b. Characters of a and b may
// combine, such as a letter and the mark after it, so the cells at the seam are cut
// again, up to the next plain cell on each side.
func join(a, b []cell) []cell {
	if len(a) == 0 || len(b) == 0 {
		return slices.Concat(a, b)
	}
	from, to := len(a), 0
	for from > 0 && a[from-1].block == nil {
		if from--; a[from].plain() {
			break
		}
	}
	for to < len(b) && b[to].block == nil {
		if to++; b[to-1].plain() {
			break
		}
	}
	var seam strings.Builder
	for _, c := range slices.Concat(a[from:], b[:to]) {
		seam.WriteString(c.text)
	}
	return slices.Concat(a[:from], segment(seam.String()), b[to:])
}

// offset returns the size of the first n cells.
func offset(cells []cell, n int) (sum int) {
	for _, c := range cells[:n] {
		sum += c.size()
	}
	return sum
}

// boundary returns the index of the first cell that begins at offset or after it.
func boundary(cells []cell, offset int) int {
	for i, c := range cells {
		if offset <= 0 {
			return i
		}
		offset -= c.size()
	}
	return len(cells)
}

// wrap returns where the rows of a line begin, if a row has width columns. It
// breaks after the last space of a row or, in a longer word, between cells.
func (l *line) wrap(width int) []int {
	if l.width == width {
		return l.rows
	}
	l.width, l.rows = width, []int{0}
	used, space := 0, -1 // columns of the row; the cell after its last space
	for i, c := range l.cells {
		for used > 0 && used+c.width > width {
			start := i
			if space > l.rows[len(l.rows)-1] && !c.space() {
				start = space
			}
			l.rows, used, space = append(l.rows, start), columns(l.cells[start:i]), -1
		}
		used += c.width
		if c.space() {
			space = i + 1
		}
	}
	return l.rows
}

// columns returns the width of cells.
func columns(cells []cell) (sum int) {
	for _, c := range cells {
		sum += c.width
	}
	return sum
}

// row returns the cells of a row, and the index of its first one.
func (l *line) row(n, width int) ([]cell, int) {
	rows := l.wrap(width)
	if n+1 < len(rows) {
		return l.cells[rows[n]:rows[n+1]], rows[n]
	}
	return l.cells[rows[n]:], rows[n]
}

// rowOf returns the row in which the cursor before a cell is shown.
func (l *line) rowOf(cell, width int) int {
	rows := l.wrap(width)
	n, found := slices.BinarySearch(rows, cell)
	if found {
		return n
	}
	return n - 1
}
