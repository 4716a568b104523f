package engine

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// cursor packs where a list goes on into an opaque word, which is good for that list only.
func cursor(list string, at ...int64) string {
	parts := []string{list}
	for _, n := range at {
		parts = append(parts, strconv.FormatInt(n, 36))
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, ".")))
}

// parseCursor is the inverse, for a list whose cursors have n numbers. An empty cursor is all zeros.
func parseCursor(s, list string, n int) ([]int64, error) {
	at := make([]int64, n)
	if s == "" {
		return at, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	parts := strings.Split(string(raw), ".")
	if err != nil || len(parts) != n+1 || parts[0] != list {
		return nil, badCursor()
	}
	for i, p := range parts[1:] {
		if at[i], err = strconv.ParseInt(p, 36, 64); err != nil || at[i] < 0 {
			return nil, badCursor()
		}
	}
	return at, nil
}

func badCursor() error {
	return &ParamError{Pointer: "/cursor", Reason: "is not a cursor of this list"}
}

// The lists that are read by page; those of one session are told apart by its key.
const sessionPages = "s"

func turnPages(session int64) string { return "t" + strconv.FormatInt(session, 36) }

func nodePages(session int64) string { return "n" + strconv.FormatInt(session, 36) }
