// Package chat is the terminal chat: a session as a person reads, answers and steers it. What it shows is a fold over the
// session's events, so that a daemon that was killed and started again costs nothing that is seen.
package chat

import (
	"context"

	"lashd/rpc/protocol"
)

// EventNote is the type of an event that no daemon sends: its Text is a note to the person.
const EventNote protocol.EventType = "chat/note"

// Session is what a chat has of a daemon. Its methods but Call are used by one goroutine at a time; Call by several.
type Session interface {
	// Open connects, with a daemon that is started if need be. It gives the whole session the first time and after a gap, and else
	// what has changed since; events follow.
	Open(ctx context.Context) (*protocol.SessionAttachResult, error)
	// Next waits for events, each durable one once; among them may be events of the type EventNote. It fails with ErrGone when the connection is lost: then Open is next.
	Next(ctx context.Context) ([]protocol.Event, error)
	// Call calls a method. A lost connection is ErrGone, and then nobody knows what came of it.
	Call(ctx context.Context, method string, params, result any) error
	// Use has the next Open open another session.
	Use(id protocol.SessionID)
}
