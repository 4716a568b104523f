package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/internal/console"
)

const (
	columnGap = 2  // spaces between columns
	leastCell = 8  // no column becomes narrower than that
	leastID   = 16 // type prefix and time of an id; ids are cut to a longer prefix if that is not unique in the column
)

// table prints rows in aligned columns, without trailing spaces. Each cell must be a single line. On a terminal it fits the width: the
// widest columns are cut, ids to a unique prefix and other cells with an ellipsis. A first row in capitals is a header.
func table(rows [][]string) error {
	if width := console.Columns(os.Stdout); width > 0 {
		rows = fit(rows, width)
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
		if _, err := fmt.Fprintln(console.Stdout, strings.TrimRight(line.String(), " ")); err != nil {
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

// fit returns the rows with cells cut so that each row has at most width cells of the terminal. The narrowest columns stay.
func fit(rows [][]string, width int) [][]string {
	widths := widthsOf(rows)
	excess := columnGap*(len(widths)-1) - width
	for _, w := range widths {
		excess += w
	}
	if excess <= 0 {
		return rows
	}
	rows = withShortIDs(rows, widths, &excess)
	for excess > 0 {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastCell {
			break
		}
		widths[widest]--
		excess--
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = ansi.Truncate(cell, widths[i], "…")
		}
	}
	return rows
}

// anID matches an id that lashd creates.
var anID = regexp.MustCompile(`^[a-z]{3}_[0-9a-f]{32}$`)

// withShortIDs returns a copy of rows. It cuts the ids of each column to the shortest prefix of at least leastID characters that is
// unique in the column, and adjusts the widths.
func withShortIDs(rows [][]string, widths []int, excess *int) [][]string {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i] = slices.Clone(rows[i])
	}
	for column := range widths {
		var ids []string
		for _, row := range rows {
			if column < len(row) && anID.MatchString(row[column]) {
				ids = append(ids, row[column])
			}
		}
		n := prefixLength(ids)
		for _, row := range rows {
			if column < len(row) && anID.MatchString(row[column]) {
				row[column] = row[column][:n]
			}
		}
		narrow := widthsOf(rows)[column]
		*excess -= widths[column] - narrow
		widths[column] = narrow
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
		for same < len(ids[i]) && ids[i-1][same] == ids[i][same] {
			same++
		}
		n = max(n, same+1)
	}
	return min(n, idLength)
}

// states are the words of the columns that show a state, by their colour.
var states = map[console.Paint][]string{
	console.Good:    {"running", "loaded", "ok", "working", "delivered"},
	console.Waiting: {"requiresAction", "waiting", "queued", "untrusted", "changed", "degraded", "quarantined"},
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
