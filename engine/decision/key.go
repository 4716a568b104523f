package decision

import "lashd/rpc/protocol"

// Key identifies a question about a call within a turn, independent of decision ids. A resumed turn uses it to find the question of an
// earlier run of the daemon, so a person is asked once.
type Key struct {
	Kind  protocol.DecisionKind
	Call  protocol.CallID
	Which protocol.Digest // hash of the question, for questions that the call itself asks; else empty
}

// KeyOf returns the key of a decision about a call. d.Call must not be nil.
func KeyOf(d protocol.Decision) Key {
	if d.Kind == protocol.DecisionQuestion {
		return Key{d.Kind, d.Call.CallID, d.ArgsHash}
	}
	return Key{Kind: d.Kind, Call: d.Call.CallID}
}
