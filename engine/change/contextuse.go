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

// ContextUse returns the usage of the newest model call of a session up to a sequence number. With it a client shows how full the context
// window is before the next turn. It returns nil if the history was compacted or rewound after that call, or if the newest 2048 events
// record no call. session is the key of the session. It reads the log backwards in pages and may be called from any goroutine.
func ContextUse(ctx context.Context, log *persistence.Reader, session int64, newest protocol.Seq) (*protocol.Usage, error) {
	for reads := 0; reads < contextReads && newest > 0; reads++ {
		from := newest - min(newest, contextPage)
		page, err := log.Events(ctx, session, from, int(newest-from))
		if err != nil {
			return nil, err
		}
		for _, row := range slices.Backward(page) {
			if used, found, err := contextOf(row); found || err != nil {
				return used, err
			}
		}
		newest = from
	}
	return nil, nil
}

// contextOf returns the usage of a model call that an event records, and reports whether ContextUse ends with this event. A call without
// usage, such as a failed one, says nothing about the context.
func contextOf(row persistence.StoredEvent) (*protocol.Usage, bool, error) {
	switch row.Type {
	case protocol.EventSessionCompacted, protocol.EventSessionRewound:
		return nil, true, nil
	case protocol.EventModelRecorded:
		var e Event
		if err := json.Unmarshal(row.Body, &e); err != nil || e.Call == nil || e.Call.Usage == nil {
			return nil, false, err
		}
		return e.Call.Usage, true, nil
	}
	return nil, false, nil
}
