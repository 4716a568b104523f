package cli

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/internal/console"
)

const (
	columnGap = 2  // spaces between columns
	readable  = 16 // columns are dropped before one that is not the first becomes narrower than that
	leastCell = 8  // no column becomes narrower than that
	leastID   = 14 // type prefix and ten digits of an id, which tell apart ids of different quarters of a second
)

// table prints rows in aligned columns, without trailing spaces. Each cell must be a single line. A first row in capitals is a header. On a
// terminal, ids are cut to a unique prefix, and the table fits the width: the columns of less are dropped, the first of them first, and then
// the widest columns are cut. The first column, which names a row, is cut last.
func table(rows [][]string, less ...string) error {
	for _, line := range tableLines(rows, console.Columns(os.Stdout), less) {
		if _, err := fmt.Fprintln(console.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// tableLines returns the lines of a table. A width of 0 is that of no terminal.
func tableLines(rows [][]string, width int, less []string) (lines []string) {
	if width > 0 {
		rows = fit(rows, width, less)
	}
	widths := widthsOf(rows)
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			paint := paintOf(rows, row, i)
			line.WriteString(paint.On(os.Stdout, cell))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+columnGap))
			}
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

// properties prints rows of a name and its value. On a terminal, a long value continues below its beginning.
func properties(rows [][]string) error {
	width, indent := console.Columns(os.Stdout), widthsOf(rows)[0]+columnGap
	for _, row := range rows {
		label := row[0] + strings.Repeat(" ", indent-ansi.StringWidth(row[0]))
		if _, err := fmt.Fprintln(console.Stdout, strings.TrimRight(label+console.Hanging(row[1], width, indent), " ")); err != nil {
			return err
		}
	}
	return nil
}

// widthsOf returns the width of each column.
func widthsOf(rows [][]string) (widths []int) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return widths
}

// fit returns a copy of rows with short ids whose rows have at most width cells of the terminal, if that is possible.
func fit(rows [][]string, width int, less []string) [][]string {
	rows = withShortIDs(rows)
	for _, name := range less {
		if widths := widthsOf(rows); widths[0]+columnGap+total(widths[1:], readable) <= width {
			break
		}
		rows = without(rows, name)
	}
	widths := widthsOf(rows)
	for excess := total(widths, math.MaxInt) - width; excess > 0; excess-- {
		i := widest(widths)
		if widths[i] <= leastCell {
			break
		}
		widths[i]--
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = ansi.Truncate(cell, widths[i], "…")
		}
	}
	return rows
}

// widest returns the column to cut: the widest one, and the first one only if the others have the least width.
func widest(widths []int) (at int) {
	for i, w := range widths {
		if i > 0 && w > leastCell && (at == 0 || w > widths[at]) {
			at = i
		}
	}
	return at
}

// total returns the width of a table whose columns are at most most wide.
func total(widths []int, most int) int {
	sum := columnGap * (len(widths) - 1)
	for _, w := range widths {
		sum += min(w, most)
	}
	return sum
}

// without returns rows without the column of that name, if the header has it.
func without(rows [][]string, name string) [][]string {
	at := slices.Index(rows[0], name)
	for i := range rows {
		if at >= 0 && at < len(rows[i]) {
			rows[i] = slices.Delete(rows[i], at, at+1)
		}
	}
	return rows
}

// anID matches an id that lashd creates.
var anID = regexp.MustCompile(`^[a-z]{3}_[a-z]?[0-9a-f]{15,32}$`)

// shortID returns the beginning of an id, for a note. It has the time in milliseconds at which the id was made, so it is unique in practice.
func shortID[ID ~string](id ID) ID {
	if anID.MatchString(string(id)) {
		return id[:noteID]
	}
	return id
}

// noteID is the length of ids in notes.
const noteID = 16

// withShortIDs returns a copy of rows. It cuts the ids of each column to the shortest prefix of at least leastID characters that is
// unique in the column.
func withShortIDs(rows [][]string) [][]string {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i] = slices.Clone(rows[i])
	}
	for column := range widthsOf(rows) {
		var ids []string
		for _, row := range rows {
			if column < len(row) && anID.MatchString(row[column]) {
				ids = append(ids, row[column])
			}
		}
		n := prefixLength(ids)
		for _, row := range rows {
			if column < len(row) && anID.MatchString(row[column]) {
				row[column] = row[column][:min(n, len(row[column]))]
			}
		}
	}
	return rows
}

// prefixLength returns the length of the prefixes that tell the ids apart.
func prefixLength(ids []string) int {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	n := leastID
	for i := 1; i < len(ids); i++ {
		same := 0
		for same < min(len(ids[i-1]), len(ids[i])) && ids[i-1][same] == ids[i][same] {
			same++
		}
		n = max(n, same+1)
	}
	return min(n, idLength)
}

// states are the words of the columns that show a state, by their colour.
var states = map[console.Paint][]string{
	console.Good:    {"running", "loaded", "ok", "working", "delivered"},
	console.Waiting: {"asks you", "waiting", "queued", "untrusted", "changed", "degraded", "quarantined"},
	console.Bad:     {"failed", "error", "wrong", "refused", "missed"},
}

// paintOf returns the colour of a cell: that of a heading in a header, and that of the state in a column of states.
func paintOf(rows [][]string, row []string, column int) console.Paint {
	head := rows[0]
	if len(head) == 0 || head[0] == "" || head[0] != strings.ToUpper(head[0]) {
		return console.Plain
	}
	if &row[0] == &head[0] {
		return console.Heading
	}
	if column < len(head) && slices.Contains([]string{"STATE", "STATUS", "RESULT"}, head[column]) {
		for paint, words := range states {
			if slices.Contains(words, row[column]) {
				return paint
			}
		}
	}
	return console.Plain
}
