package graph

import (
	"encoding/json"

	"lashd/rpc/protocol"
)

// Repeated reports for each node whether its message is also in history, with the same role, origin and content. Nodes
// without a message repeat none.
func Repeated(nodes []protocol.NodeBody, history []protocol.Message) []bool {
	known := map[string]bool{}
	for i := range history {
		if content, ok := contentOf(&history[i]); ok {
			known[content] = true
		}
	}
	repeated := make([]bool, len(nodes))
	for i, n := range nodes {
		content, ok := contentOf(n.Message)
		repeated[i] = ok && known[content]
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
