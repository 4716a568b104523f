package protocol

// CompactionPreviewResult says what session/compact would do with the history that the model sees. All numbers of tokens are estimates. The
// plugin history answers; a plugin with a compactor of its own may do something else.
type CompactionPreviewResult struct {
	Compacts   bool           `json:"compacts"`    // false: there is nothing to summarize
	Summarized CompactionPart `json:"summarized"`  // what a summary replaces
	Kept       CompactionPart `json:"kept"`        // what stays word for word
	Tokens     int64          `json:"tokens"`      // of the history now
	After      int64          `json:"tokensAfter"` // of what is kept, without the summary
}

// CompactionPart is a part of the history.
type CompactionPart struct {
	Messages int      `json:"messages"`
	Tokens   int64    `json:"tokens"`
	Inputs   []string `json:"inputs"`               // the first lines of its inputs, at most 20, newest last
	More     int      `json:"moreInputs,omitempty"` // number of inputs before these
}

// CompactionQuery is the id of the query that answers session/compactPreview.
const CompactionQuery = "history.preview"
