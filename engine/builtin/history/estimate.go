package history

import (
	"slices"

	"lashd/rpc/protocol"
)

// tokens estimates the number of tokens of a message.
func tokens(m *protocol.Message) int64 {
	var n int64
	for i := range m.Parts {
		n += m.Parts[i].EstimatedTokens()
	}
	return n
}

// inputs returns the indexes of the messages of people and plugins. Turns start there, so
// history may be cut there without separating a call from its result.
func inputs(messages []protocol.Message) []int {
	var at []int
	for i := range messages {
		if messages[i].Role == protocol.RoleUser && !slices.ContainsFunc(messages[i].Parts, isResult) {
			at = append(at, i)
		}
	}
	return at
}

func isResult(p protocol.Part) bool { return p.Kind == protocol.PartToolResult }
