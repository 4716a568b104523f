package history

import (
	"slices"

	"lashd/rpc/protocol"
)

const (
	bytesPerToken    = 4
	attachmentTokens = 1200
)

// tokens is about how many tokens a message has.
func tokens(m *protocol.Message) int64 {
	var n int64
	for i := range m.Parts {
		n += partTokens(&m.Parts[i])
	}
	return n
}

func partTokens(p *protocol.Part) int64 {
	n := len(p.Text)
	switch {
	case p.Prune != nil:
		n = len(p.Prune.Breadcrumb)
	case p.Attachment != nil:
		return attachmentTokens
	case p.Call != nil:
		n += len(p.Call.Name) + len(p.Call.Args)
	case p.Result != nil:
		n += max(len(p.Result.Output.Text), len(p.Result.Output.Value)) // a model is shown one of them
	}
	return int64(n+bytesPerToken-1) / bytesPerToken
}

// inputs are the places of what people and plugins said: turns begin there, and history may be cut.
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
