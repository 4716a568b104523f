package cli

import (
	"context"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// idLength is how long an id is that lashd makes: a prefix of four characters and 32 hexadecimal digits.
const idLength = len("ses_") + 32

// byPrefix is the one of several ids that text means: the id itself, or the only one that begins with it. The type prefix may be left
// out. what and list name the things and the command that lists them.
func byPrefix[ID ~string](text, typed, what, list string, ids []ID) (ID, error) {
	var found []ID
	for _, id := range ids {
		if string(id) == text {
			return id, nil
		}
		if strings.HasPrefix(string(id), text) || strings.HasPrefix(string(id), typed+text) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no %s has an id that begins with %q; %s lists the ids", what, text, list)
	case 1:
		return found[0], nil
	}
	return "", &exitError{exitUsage, fmt.Errorf("%d %ss have an id that begins with %q, such as %s and %s; use a longer prefix", len(found), what, text, found[0], found[1])}
}

// sessionID is the session that text means: its id or any unique beginning of it. The daemon finds out whether a whole id exists.
func (l *link) sessionID(ctx context.Context, text string) (protocol.SessionID, error) {
	if len(text) >= idLength {
		return protocol.SessionID(text), nil
	}
	var ids []protocol.SessionID
	for _, archived := range []bool{false, true} {
		err := l.eachSession(ctx, protocol.SessionListParams{Archived: archived, Children: true, Limit: 200}, func(s *protocol.Session) { ids = append(ids, s.ID) })
		if err != nil {
			return "", err
		}
	}
	return byPrefix(text, "ses_", "session", "lashd session", ids)
}

// sessionID is the same over a connection of its own; empty: no session is named.
func (e *environment) sessionID(ctx context.Context, text string) (protocol.SessionID, error) {
	if text == "" || len(text) >= idLength {
		return protocol.SessionID(text), nil
	}
	l, err := e.dial(ctx, true, nil)
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.sessionID(ctx, text)
}

func (l *link) eachSession(ctx context.Context, p protocol.SessionListParams, do func(*protocol.Session)) error {
	for {
		var r protocol.SessionListResult
		if err := l.Call(ctx, "session/list", p, &r); err != nil {
			return l.reason(err)
		}
		for i := range r.Data {
			do(&r.Data[i])
		}
		if p.Cursor = r.NextCursor; p.Cursor == "" {
			return nil
		}
	}
}

// turnID is the turn or file point that text means, of one session if that is known.
func (l *link) turnID(ctx context.Context, id protocol.SessionID, text string) (string, error) {
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
	return byPrefix(text, "trn_", "turn or file point", "lashd session points", ids)
}
