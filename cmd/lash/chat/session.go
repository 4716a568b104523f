// Package chat is the terminal chat of lashd. The user reads a session, answers
// its decisions and sends inputs.
//
// The screen is a fold over the events of the session (see transcript): every
// event is applied once, in order. If the daemon dies, the chat reconnects and
// continues with the next event, so nothing on the screen is lost or repeated.
//
// The program follows the Elm architecture of Bubble Tea: ui is the model, Update
// handles one message at a time, and commands (tea.Cmd) do everything that blocks.
package chat

import (
	"context"

	"lashd/rpc/protocol"
)

// EventNote is the type of an event that a Session makes itself. The chat shows
// its Text as a note. The daemon never sends it.
const EventNote protocol.EventType = "chat/note"

// Session is the connection of a chat to the daemon. Call may be called by several
// goroutines at once. The other methods are called by one goroutine at a time.
type Session interface {
	// Open connects to the daemon, starts it if it is not running, and subscribes
	// to the session. It fails with a *NoModelError if there is no model for a new
	// session. The first Open, and one after a gap, returns the whole
	// session. Others return the changes since the last event. New events come
	// from Next.
	Open(ctx context.Context) (*protocol.SessionAttachResult, error)
	// Next waits for events. It returns each durable event once, and possibly
	// events of type EventNote. It returns ErrGone if the connection is lost; call
	// Open again.
	Next(ctx context.Context) ([]protocol.Event, error)
	// Call calls a method of the daemon. After ErrGone the outcome of the call is unknown.
	Call(ctx context.Context, method string, params, result any) error
	// Use makes the next Open open another session. made says that the chat has created it.
	Use(id protocol.SessionID, made bool)
	// Choose makes the next Open create its session with a model. It has an effect only after a NoModelError.
	Choose(model string)
}
