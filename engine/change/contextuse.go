package change

import (
	"context"
	"encoding/json"
	"slices"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

const (
	contextPage  = 256 // events in one read of ContextUse
	contextReads = 8   // reads after which ContextUse gives up
)

// ContextUse returns the usage of the newest model call whose reply is in the history of a session, up to a sequence number. With it a client
// shows how full the context window is before the next turn. path is the end of that history. ContextUse returns nil if the history was
// compacted after that call, if it ends within a turn that was rewound in part, or if the newest 2048 events record no call. A fork without calls
// has the usage of the session that it was forked from. It reads the log backwards in pages and may be called from any goroutine.
func ContextUse(ctx context.Context, log *persistence.Reader, s persistence.Session, newest protocol.Seq, path []protocol.Node) (*protocol.Usage, error) {
	search := contextSearch{path: path}
	for range contextReads {
		if newest == 0 {
			source := s.Relation.Source
			if source == nil {
				return nil, nil
			}
			var err error
			if s, err = log.Session(ctx, source.SessionID); err != nil {
				return nil, context.Cause(ctx) // it was deleted or is damaged, and the fork does not need it
			}
			newest, search.rewound = s.Seq, true
		}
		from := newest - min(newest, contextPage)
		page, err := log.Events(ctx, s.Key, from, int(newest-from))
		if err != nil {
			return nil, err
		}
		for _, row := range slices.Backward(page) {
			if used, found, err := search.in(row); found || err != nil {
				return used, err
			}
		}
		newest = from
	}
	return nil, nil
}

// contextSearch finds the model call of ContextUse in events, newest first.
type contextSearch struct {
	path    []protocol.Node
	rewound bool // the events before may be of turns that the history does not have
}

// in returns the usage of a model call that an event records, and reports whether the search ends with this event. A call without
// usage, such as a failed one, says nothing about the context.
func (s *contextSearch) in(row persistence.StoredEvent) (*protocol.Usage, bool, error) {
	switch row.Type {
	case protocol.EventSessionCompacted:
		return nil, true, nil
	case protocol.EventSessionRewound:
		s.rewound = true
	case protocol.EventModelRecorded:
		var e Event
		if err := json.Unmarshal(row.Body, &e); err != nil || e.Call == nil || e.Call.Usage == nil || s.rewound && !s.has(e.TurnID) {
			return nil, false, err
		}
		if s.rewound && !s.whole() {
			return nil, true, nil
		}
		return e.Call.Usage, true, nil
	}
	return nil, false, nil
}

// has reports whether the history has something of a turn.
func (s *contextSearch) has(id protocol.TurnID) bool {
	return slices.ContainsFunc(s.path, func(n protocol.Node) bool { return n.TurnID == id })
}

// whole reports whether the history ends with a reply, as a turn does that was not rewound in part.
func (s *contextSearch) whole() bool {
	for i := range slices.Backward(s.path) {
		if m := s.path[i].Message; m != nil {
			return m.Role == protocol.RoleAssistant
		}
	}
	return false
}
