package cli

import (
	"context"
	"fmt"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// idLength is the length of an id that lashd creates: a type prefix of four
// characters and 32 hexadecimal digits. Clients may choose shorter ids. Text of
// this length is used as an id without a lookup.
const idLength = len("ses_") + 32

// byPrefix returns the id in ids that equals text, or else the only one that
// begins with it. text may omit the type prefix typed, such as "ses_". Error
// messages use what, a noun such as "session", and list, the command that lists
// the ids. An ambiguous prefix is a usage error.
func byPrefix[ID ~string](text, typed, what, list string, ids []ID) (ID, error) {
	var found []ID
	for _, id := range ids {
		if string(id) == text {
			return id, nil
		}
		if begins(string(id), typed, text) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no %s has an id that begins with %q; %s lists the ids", what, text, list)
	case 1:
		return found[0], nil
	}
	return "", console.Exit(console.ExitUsage, fmt.Errorf("%d %ss have an id that begins with %q, such as %s and %s; use a longer prefix", len(found), what, text, found[0], found[1]))
}

// begins reports whether an id begins with text, which may omit the type prefix typed.
func begins(id, typed, text string) bool {
	return strings.HasPrefix(id, text) || strings.HasPrefix(id, typed+text)
}

// sessionID returns the id of the session that text names: an id or a unique
// prefix. It looks among the sessions that lash session lists and then, if none
// of them matches, among archived ones and subagents. It does not check that a
// whole id exists.
func sessionID(ctx context.Context, l *daemon.Link, text string) (protocol.SessionID, error) {
	if len(text) >= idLength {
		return protocol.SessionID(text), nil
	}
	for _, p := range []protocol.SessionListParams{{Limit: 200}, {Children: true, Limit: 200}, {Archived: true, Children: true, Limit: 200}} {
		var ids []protocol.SessionID
		err := eachSession(ctx, l, p, func(s *protocol.Session) {
			if begins(string(s.ID), "ses_", text) {
				ids = append(ids, s.ID)
			}
		})
		if err != nil {
			return "", err
		}
		if len(ids) > 0 {
			return byPrefix(text, "ses_", "session", "lash session", ids)
		}
	}
	return byPrefix(text, "ses_", "session", "lash session", []protocol.SessionID{})
}

// findSession does the same on a connection of its own. An empty text gives an empty id.
func findSession(ctx context.Context, e *daemon.Environment, text string) (protocol.SessionID, error) {
	if text == "" || len(text) >= idLength {
		return protocol.SessionID(text), nil
	}
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return "", err
	}
	defer l.Close()
	return sessionID(ctx, l, text)
}

// eachSession calls do for every session that matches p, page by page. The pointer
// is valid only during the call.
func eachSession(ctx context.Context, l *daemon.Link, p protocol.SessionListParams, do func(*protocol.Session)) error {
	for {
		var r protocol.SessionListResult
		if err := l.Call(ctx, "session/list", p, &r); err != nil {
			return l.Reason(err)
		}
		for i := range r.Data {
			do(&r.Data[i])
		}
		if p.Cursor = r.NextCursor; p.Cursor == "" {
			return nil
		}
	}
}

// turnID returns the id of the turn or file point of a session that text names: an
// id, a unique prefix, or "".
func turnID(ctx context.Context, l *daemon.Link, id protocol.SessionID, text string) (string, error) {
	if len(text) >= idLength || text == "" {
		return text, nil
	}
	points, err := pointsOf(ctx, l, id)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, p := range points {
		ids = append(ids, string(p.ID))
		if p.TurnID != "" {
			ids = append(ids, string(p.TurnID))
		}
	}
	return byPrefix(text, "trn_", "turn or file point", "lash session points", ids)
}
