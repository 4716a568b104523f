package engine

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode"

	"lashd/rpc/protocol"
)

// What a client may ask for at most. Larger values are mistakes, or would overflow on the way.
const (
	maxWait        = 365 * 24 * time.Hour
	maxName        = 256 // bytes of a key or label that a client chooses; the store takes no longer keys
	maxSessionID   = 128 // likewise
	maxTitle       = 1000
	maxClientTools = 512
	maxParts       = 1000 // of an input or a message
)

// checkWait refuses a time that is negative or does not fit.
func checkWait(pointer string, ms int64) error {
	if ms < 0 || ms > maxWait.Milliseconds() {
		return bad(pointer, "must be 0 to %d milliseconds", maxWait.Milliseconds())
	}
	return nil
}

// checkName refuses a name that a client chose, if nobody could write it into a log or a file name. None is fine.
func checkName(pointer, name string) error {
	if len(name) > maxName || strings.ContainsFunc(name, unicode.IsControl) {
		return bad(pointer, "must have at most %d bytes and no control characters", maxName)
	}
	return nil
}

// CheckClientID refuses an id that no client should go by. None is fine.
func CheckClientID(id protocol.ClientID) error { return checkName("/clientId", string(id)) }

// CheckPlugin refuses what names no plugin, or no workspace of one. No workspace is fine.
func CheckPlugin(name, cwd string) error {
	if name == "" {
		return bad("/name", "is needed")
	}
	if err := checkName("/name", name); err != nil {
		return err
	}
	return CheckWorkspace(cwd)
}

// CheckWorkspace refuses what is no directory. None is fine.
func CheckWorkspace(cwd string) error {
	if cwd == "" {
		return nil
	}
	_, err := checkCwd(cwd)
	return err
}

func checkTitle(title string) error {
	if len(title) > maxTitle {
		return bad("/title", "has %d bytes, at most %d", len(title), maxTitle)
	}
	return nil
}

// checkSessionID refuses an id for a new session that could not stand in a path or a command. None is fine.
func checkSessionID(id protocol.SessionID) error {
	if len(id) > maxSessionID || strings.ContainsFunc(string(id), func(c rune) bool { return !isIDRune(c) }) {
		return bad("/sessionId", "must have at most %d letters, digits, - and _", maxSessionID)
	}
	return nil
}

func isIDRune(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// pageSize is the size that a client asks for; 0 is the default.
func pageSize(n, def, limit int) (int, error) {
	if n < 0 || n > limit {
		return 0, bad("/limit", "must be 1 to %d", limit)
	}
	return cmp.Or(n, def), nil
}

func checkGeneration(g protocol.GenerationOptions) error {
	if g.MaxOutput < 0 {
		return bad("/generation/maxOutput", "must not be negative")
	}
	if g.Temperature != nil && *g.Temperature < 0 {
		return bad("/generation/temperature", "must not be negative")
	}
	for i, s := range g.Stop {
		if s == "" {
			return bad("/generation/stop/"+itoa(i), "must not be empty")
		}
	}
	return nil
}

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
