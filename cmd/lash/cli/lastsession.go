package cli

import (
	"cmp"
	"slices"

	"lashd/cmd/lash/turns"
	"lashd/rpc/protocol"
)

// mostInputs and mostSessions are the newest inputs and sessions of a directory among which lastSession looks.
const (
	mostInputs   = 500
	mostSessions = 200
)

// lastSession returns the session that a person used last in a directory: the one with the newest input of a person, or a fork that is
// newer than that. Sessions that only lashd or a trigger has changed since do not count, unless there is no other; "" if there is none.
func lastSession(call turns.Call, cwd string) (protocol.SessionID, error) {
	var sessions protocol.SessionListResult
	if err := call("session/list", protocol.SessionListParams{Cwd: cwd, Limit: mostSessions}, &sessions); err != nil || len(sessions.Data) == 0 {
		return "", err
	}
	var inputs protocol.SessionInputsResult
	if err := call("session/inputs", protocol.SessionInputsParams{Cwd: cwd, Limit: mostInputs}, &inputs); err != nil {
		return "", err
	}
	used := lastUsed(sessions.Data, inputs.Data)
	return slices.MaxFunc(sessions.Data, func(a, b protocol.Session) int { return used(a.ID, b.ID) }).ID, nil
}

// lastUsed returns the order of sessions by their last use. Equal ones keep the order of the list, with the first as the largest.
func lastUsed(sessions []protocol.Session, inputs []protocol.SentInput) func(a, b protocol.SessionID) int {
	at := map[protocol.SessionID]int64{}
	for _, s := range sessions {
		if s.Relation.Kind == protocol.RelationFork {
			at[s.ID] = s.CreatedAtMs
		}
	}
	for _, in := range inputs {
		at[in.SessionID] = max(at[in.SessionID], in.AtMs)
	}
	return func(a, b protocol.SessionID) int { return cmp.Compare(at[a], at[b]) }
}
