package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestFit(t *testing.T) {
	id := func(n string) string { return "ses_01a224896c8c" + n + strings.Repeat("0", 20-len(n)) }
	rows := [][]string{{"SESSION", "STATE", "TITLE"}, {id("1"), "idle", strings.Repeat("é", 60)}, {id("22"), "running", "界界界界界界界界界界"}}
	width := func(rows [][]string) int {
		most := columnGap * (len(rows[0]) - 1)
		for _, w := range widthsOf(rows) {
			most += w
		}
		return most
	}
	for _, columns := range []int{200, 100, 80, 60, 40} {
		t.Run("issue/21-3 a table fits the terminal: the widest columns are cut, ids to a unique prefix", func(t *testing.T) {
			got := fit(rows, columns)
			if w := width(got); w > columns {
				t.Errorf("%d columns: %d wide: %q", columns, w, got)
			}
			if columns == 200 && !slices.EqualFunc(got, rows, slices.Equal[[]string]) {
				t.Errorf("a table that fits was cut: %q", got)
			}
			if columns >= 60 && (got[1][0] == got[2][0] || !strings.HasPrefix(rows[1][0], got[1][0]) || !strings.HasPrefix(rows[2][0], got[2][0])) {
				t.Errorf("%d columns: the ids are %q and %q, want unique prefixes", columns, got[1][0], got[2][0])
			}
			if columns <= 80 && !strings.HasSuffix(got[1][2], "…") {
				t.Errorf("%d columns: the long title is %q", columns, got[1][2])
			}
		})
	}
	if got := fit([][]string{{"a", strings.Repeat("b", 50)}}, 4); ansi.StringWidth(got[0][1]) != leastCell {
		t.Errorf("on a tiny terminal the cell is %q, want %d wide", got[0][1], leastCell)
	}
}
