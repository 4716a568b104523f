package param

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// Cursor packs the position where a list continues into an opaque word, which is valid for that list only.
func Cursor(list string, at ...int64) string {
	parts := []string{list}
	for _, n := range at {
		parts = append(parts, strconv.FormatInt(n, 36))
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, ".")))
}

// ParseCursor is the inverse of Cursor, for a list whose cursors have n numbers. An empty cursor is all zeros.
func ParseCursor(s, list string, n int) ([]int64, error) {
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
	return &Error{Pointer: "/cursor", Reason: "is not a cursor of this list"}
}

// SessionPages is the list of sessions for Cursor.
const SessionPages = "s"

// TurnPages is the list of the turns of one session, by its key.
func TurnPages(session int64) string { return "t" + strconv.FormatInt(session, 36) }

// NodePages is the list of the nodes of one session, by its key.
func NodePages(session int64) string { return "n" + strconv.FormatInt(session, 36) }
