package param

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// Cursor encodes the position at which a list continues as an opaque string. It is valid
// only for the list of that name.
func Cursor(list string, at ...int64) string {
	parts := []string{list}
	for _, n := range at {
		parts = append(parts, strconv.FormatInt(n, 36))
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, ".")))
}

// ParseCursor decodes a cursor with n numbers. It returns an Error for a cursor of another
// list. An empty cursor decodes to zeros, the start of the list.
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

// SessionPages is the cursor name of the list of sessions.
const SessionPages = "s"

// InputPages is the cursor name of the list of inputs that people sent.
const InputPages = "i"

// SearchPages is the cursor name of the results of a search.
const SearchPages = "q"

// ExportPages returns the cursor name of the parts of an exported session, given the store's
// number of the session.
func ExportPages(session int64) string { return "x" + strconv.FormatInt(session, 36) }

// TurnPages returns the cursor name of the list of turns of a session, given the store's
// number of the session.
func TurnPages(session int64) string { return "t" + strconv.FormatInt(session, 36) }

// NodePages returns the cursor name of the list of nodes of a session, given the store's
// number of the session.
func NodePages(session int64) string { return "n" + strconv.FormatInt(session, 36) }
