package plugin

import (
	"cmp"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// TurnRequest asks for a turn of another session. The plugin chooses TurnID, which is also the idempotency key:
// repeating a request returns the same turn, even after a crash. The turn runs whether or not anyone waits for it.
//
// Scope and Trace may repeat the ids above. Check rejects a request in which they differ.
type TurnRequest struct {
	TurnID       protocol.TurnID       `json:"turnId"`
	SessionID    protocol.SessionID    `json:"sessionId"`
	Input        []protocol.InputPart  `json:"input"`
	PluginInputs protocol.PluginInputs `json:"pluginInputs,omitempty"`
	WhenBusy     protocol.WhenBusy     `json:"whenBusy,omitempty"`
	Scope        TurnScope             `json:"scope,omitzero"`
	Trace        protocol.TurnID       `json:"trace,omitempty"` // turn under which records are traced
}

// TurnScope repeats the turn and session under which the turn's work is recorded.
type TurnScope struct {
	TurnID    protocol.TurnID    `json:"turnId,omitempty"`
	SessionID protocol.SessionID `json:"sessionId,omitempty"`
}

// TurnRequestCode says why a TurnRequest was rejected.
type TurnRequestCode string

const (
	BadTurnID      TurnRequestCode = "badTurnId"    // empty, too long, or with characters that are not safe in a path
	OtherScopeTurn TurnRequestCode = "scopeTurn"    // Scope names another turn
	OtherScope     TurnRequestCode = "scopeSession" // Scope names another session
	OtherTrace     TurnRequestCode = "traceTurn"    // Trace names another turn
	TurnIDInUse    TurnRequestCode = "turnIdInUse"  // by another turn, or by this one with another input
)

// TurnRequestError means that a request started no turn.
type TurnRequestError struct {
	Code   TurnRequestCode
	TurnID protocol.TurnID
}

func (e *TurnRequestError) Error() string {
	return fmt.Sprintf("turn %q is not started: %s", e.TurnID, e.Code)
}

// Check rejects an invalid turn id, and a Scope or Trace that differs from the request.
func (q *TurnRequest) Check() error {
	switch {
	case badID(string(q.TurnID)):
		return &TurnRequestError{BadTurnID, q.TurnID}
	case cmp.Or(q.Scope.TurnID, q.TurnID) != q.TurnID:
		return &TurnRequestError{OtherScopeTurn, q.TurnID}
	case cmp.Or(q.Scope.SessionID, q.SessionID) != q.SessionID:
		return &TurnRequestError{OtherScope, q.TurnID}
	case cmp.Or(q.Trace, q.TurnID) != q.TurnID:
		return &TurnRequestError{OtherTrace, q.TurnID}
	}
	return nil
}

const maxTurnID = 128 // bytes

// badID reports whether an id has no letter or digit, is too long, or contains anything but letters, digits, - and _.
func badID(id string) bool {
	return strings.Trim(id, "-_") == "" || len(id) > maxTurnID || strings.ContainsFunc(id, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}
