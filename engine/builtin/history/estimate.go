package history

import (
	"slices"

	"lashd/rpc/protocol"
)

const (
	// bytesPerToken and attachmentTokens estimate tokens without the model's tokenizer.
	bytesPerToken    = 4
	attachmentTokens = 1200
)

// tokens estimates the number of tokens of a message.
func tokens(m *protocol.Message) int64 {
	var n int64
	for i := range m.Parts {
		n += partTokens(&m.Parts[i])
	}
	return n
}

// partTokens estimates the tokens of one part. An attachment counts with a fixed number,
// because its size in tokens is unknown.
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
		n += max(len(p.Result.Output.Text), len(p.Result.Output.Value)) // the model sees one of them
	}
	return int64(n+bytesPerToken-1) / bytesPerToken
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
