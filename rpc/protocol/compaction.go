package protocol

import (
	"fmt"
	"strings"
)

// CompactionPreviewResult says what session/compact would do with the history that the model sees. All numbers of tokens are estimates. The
// plugin history answers; a plugin with a compactor of its own may do something else.
type CompactionPreviewResult struct {
	Compacts   bool           `json:"compacts"`    // false: there is nothing to summarize
	Summarized CompactionPart `json:"summarized"`  // what a summary replaces
	Kept       CompactionPart `json:"kept"`        // what stays word for word
	Tokens     int64          `json:"tokens"`      // of the history now
	After      int64          `json:"tokensAfter"` // of what is kept, without the summary
	Keeps      int64          `json:"keeps"`       // the newest tokens that stay, at most; a shorter history is not compacted
}

// String describes the compaction for people, in lines.
func (r CompactionPreviewResult) String() string {
	if !r.Compacts {
		return fmt.Sprintf("There is nothing to compact: the history has about %d tokens, and its newest input or up to %d tokens stay word for word.", r.Tokens, r.Keeps)
	}
	lines := []string{
		fmt.Sprintf("The history has about %d tokens. Afterwards it has about %d and a summary.", r.Tokens, r.After),
		fmt.Sprintf("A summary replaces %d messages, about %d tokens:", r.Summarized.Messages, r.Summarized.Tokens),
	}
	lines = append(lines, r.Summarized.lines()...)
	lines = append(lines, fmt.Sprintf("These %d messages stay word for word:", r.Kept.Messages))
	return strings.Join(append(lines, r.Kept.lines()...), "\n")
}

// CompactionPart is a part of the history.
type CompactionPart struct {
	Messages int      `json:"messages"`
	Tokens   int64    `json:"tokens"`
	Inputs   []string `json:"inputs"`               // the first lines of its inputs, at most 20, newest last
	More     int      `json:"moreInputs,omitempty"` // number of inputs before these
}

// lines returns a line for each of the newest five inputs of a part.
func (p CompactionPart) lines() (lines []string) {
	shown := p.Inputs[max(0, len(p.Inputs)-5):]
	if n := p.More + len(p.Inputs) - len(shown); n > 0 {
		lines = append(lines, fmt.Sprintf("  %d earlier inputs", n))
	}
	for _, text := range shown {
		lines = append(lines, "  › "+text)
	}
	return lines
}

// CompactionQuery is the id of the query that answers session/compactPreview.
const CompactionQuery = "history.preview"
