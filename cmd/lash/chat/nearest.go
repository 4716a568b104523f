package chat

import "strings"

// nearest returns the command that a person may have meant by a name, or "": one that the name is a part of, or
// that differs from it by at most two letters.
func nearest(name string) string {
	best, least := "", 3
	for _, c := range commands {
		d := distance(name, c.name)
		if len(name) > 2 && strings.Contains(c.name, name) {
			d = 1
		}
		if d < least && d < len(name) {
			best, least = c.name, d
		}
	}
	return best
}

// distance returns the number of letters to insert, remove or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
