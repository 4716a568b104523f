package strictjson

import "strings"

// Nearest returns the name that word probably means, or "" if no name is similar. It prefers a name
// that differs only in case. Next it takes the closest name within two typing errors, or one if
// word has at most four bytes. Last it takes the only name that begins with word.
func Nearest(word string, names []string) string {
	best, least := "", 3
	if len(word) <= 4 {
		least = 2
	}
	for _, name := range names {
		if strings.EqualFold(name, word) {
			return name
		}
		if d := distance(word, name, least); d < least && d < len(name) {
			best, least = name, d
		}
	}
	if best == "" {
		return completed(word, names)
	}
	return best
}

// completed returns the only name that begins with word, or "" if none or several do.
func completed(word string, names []string) string {
	best := ""
	for _, name := range names {
		if word == "" || !strings.HasPrefix(name, word) {
			continue
		}
		if best != "" {
			return ""
		}
		best = name
	}
	return best
}

// distance returns the number of bytes to insert, delete, replace or swap with a neighbor to turn a
// into b. It is at most limit.
func distance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}
