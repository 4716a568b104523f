package history

import (
	"context"
	"encoding/json"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// Limits of a part in a preview.
const (
	maxInputs = 20  // number of inputs
	maxLine   = 120 // bytes of the first line of one
)

// query implements the query that previews a compaction.
func query(ctx context.Context, call *plugin.OperationCall) (json.RawMessage, error) {
	state, err := call.Host.NeedState()
	if err != nil {
		return nil, err
	}
	view, err := state.View(ctx, call.SessionID)
	if err != nil {
		return nil, err
	}
	return json.Marshal(preview(view.Messages(), view.Window))
}

// preview says what compact would do with a history, by the same rules.
func preview(messages []protocol.Message, window int64) protocol.CompactionPreviewResult {
	old, recent := split(messages, window)
	r := protocol.CompactionPreviewResult{Compacts: compactable(old), Summarized: part(old), Kept: part(recent)}
	if !r.Compacts {
		r.Summarized, r.Kept = part(nil), part(messages)
	}
	r.Keeps = keeps(window)
	r.Tokens, r.After = r.Summarized.Tokens+r.Kept.Tokens, r.Kept.Tokens
	return r
}

// compactable reports whether there is more to summarize than an earlier summary.
func compactable(old []protocol.Message) bool {
	return len(old) > 1 || len(old) == 1 && !isSummary(&old[0])
}

// part describes a part of the history.
func part(messages []protocol.Message) protocol.CompactionPart {
	p := protocol.CompactionPart{Messages: len(messages), Inputs: []string{}}
	for i := range messages {
		p.Tokens += tokens(&messages[i])
	}
	for _, at := range inputs(messages) {
		line, _, _ := strings.Cut(strings.TrimSpace(messages[at].Text(protocol.PartText)), "\n")
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + "…"
		}
		p.Inputs = append(p.Inputs, line)
	}
	if n := len(p.Inputs) - maxInputs; n > 0 {
		p.Inputs, p.More = p.Inputs[n:], n
	}
	return p
}
