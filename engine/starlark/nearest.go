package starlark

import (
	"slices"
	"strings"
)

// nearest returns the candidate that differs least from a name, in case, underscores or a few letters; "" if none is close.
// A candidate may differ in about half of the letters of the name: short names are often mistyped as a whole.
// Of equally close ones the first in alphabetical order counts, so that code that runs again gets the same text.
func nearest(name string, candidates []string) string {
	plain := fold(name)
	best, least := "", (len(plain)+1)/2+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if d := distance(plain, fold(c), least); d < least {
			best, least = c, d
		}
	}
	return best
}

// fold removes the differences that models make most often: the case of letters and underscores.
func fold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "") }

// distance returns the number of letters to insert, delete or replace, or limit if it is at least that. Letters in
// another order count once.
func distance(a, b string, limit int) int {
	if len(a) == len(b) && a != b && sortedBytes(a) == sortedBytes(b) {
		return 1
	}
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 100 {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return min(row[len(b)], limit)
}

// sortedBytes is equal for two names that have the same letters in another order.
func sortedBytes(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}
