package engine

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// cursor packs where a list goes on into an opaque word.
func cursor(at ...int64) string {
	parts := make([]string, len(at))
	for i, n := range at {
		parts[i] = strconv.FormatInt(n, 36)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, ".")))
}

// parseCursor is the inverse, for a list whose cursors have n numbers. An empty cursor is all zeros.
func parseCursor(s string, n int) ([]int64, error) {
	at := make([]int64, n)
	if s == "" {
		return at, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	parts := strings.Split(string(raw), ".")
	if err != nil || len(parts) != n {
		return nil, badCursor()
	}
	for i, p := range parts {
		if at[i], err = strconv.ParseInt(p, 36, 64); err != nil || at[i] < 0 {
			return nil, badCursor()
		}
	}
	return at, nil
}

func badCursor() error {
	return &ParamError{Pointer: "/cursor", Reason: "is not a cursor of this list"}
}

// bounded is a page size: the default for 0, else at least 1 and at most the limit.
func bounded(n, def, limit int) int {
	if n == 0 {
		return def
	}
	return max(1, min(n, limit))
}
