package graph

import (
	"encoding/json"
	"slices"

	"lashd/rpc/protocol"
)

// Repeated reports for each node whether its message repeats one of history: with the same role, origin and content, and in
// the same order. A node repeats a message only if that is after the message that the node before repeats, so that a message
// cannot be in another place, or more often, than people see it. Nodes without a message repeat none.
func Repeated(nodes []protocol.NodeBody, history []protocol.Message) []bool {
	places := map[string][]int{} // of each content in history
	for i := range history {
		if content, ok := contentOf(&history[i]); ok {
			places[content] = append(places[content], i)
		}
	}
	repeated, from := make([]bool, len(nodes)), 0
	for i, n := range nodes {
		content, _ := contentOf(n.Message)
		at := places[content]
		next, _ := slices.BinarySearch(at, from)
		if repeated[i] = next < len(at); repeated[i] {
			from = at[next] + 1
		}
	}
	return repeated
}

// contentOf returns a message as JSON, without the spaces and line breaks that a plugin may have added to arguments. It
// reports false without a message, and for arguments that are not JSON.
func contentOf(m *protocol.Message) (string, bool) {
	if m == nil {
		return "", false
	}
	body, err := json.Marshal(m)
	return string(body), err == nil
}
