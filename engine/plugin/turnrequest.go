package plugin

import (
	"cmp"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// TurnRequest asks for a turn of another session. The plugin chooses the id, the same whenever it is asked again: the same
// request is the same turn, whatever became of it, also after a crash. Nobody has to wait for the turn. Scope and Trace may say
// again for whom it is; what is absent there is as above.
type TurnRequest struct {
	TurnID       protocol.TurnID       `json:"turnId"`
	SessionID    protocol.SessionID    `json:"sessionId"`
	Input        []protocol.InputPart  `json:"input"`
	PluginInputs protocol.PluginInputs `json:"pluginInputs,omitempty"`
	WhenBusy     protocol.WhenBusy     `json:"whenBusy,omitempty"`
	Scope        TurnScope             `json:"scope,omitzero"`
	Trace        protocol.TurnID       `json:"trace,omitempty"` // under which its records are traced
}

// TurnScope is under which what a turn does is recorded.
type TurnScope struct {
	TurnID    protocol.TurnID    `json:"turnId,omitempty"`
	SessionID protocol.SessionID `json:"sessionId,omitempty"`
}

// TurnRequestCode says what is wrong with a request for a turn.
type TurnRequestCode string

const (
	BadTurnID      TurnRequestCode = "badTurnId"    // blank, or nothing that could stand in a path
	OtherScopeTurn TurnRequestCode = "scopeTurn"    // the scope is another turn's
	OtherScope     TurnRequestCode = "scopeSession" // the scope is another session's
	OtherTrace     TurnRequestCode = "traceTurn"    // the trace is another turn's
	TurnIDInUse    TurnRequestCode = "turnIdInUse"  // of another turn, or of this one with another input
)

// TurnRequestError is a request for a turn that begins nothing.
type TurnRequestError struct {
	Code   TurnRequestCode
	TurnID protocol.TurnID
}

func (e *TurnRequestError) Error() string {
	return fmt.Sprintf("turn %q is not started: %s", e.TurnID, e.Code)
}

// Check refuses a request that contradicts itself.
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

func badID(id string) bool {
	return strings.Trim(id, "-_") == "" || len(id) > maxTurnID || strings.ContainsFunc(id, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}
