package chatcompletions

import (
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// wireUsage has the token counts in all the forms that servers send.
// A count that is absent is 0.
type wireUsage struct {
	Prompt     endpoint.Count `json:"prompt_tokens"`           // includes the cached tokens
	Completion endpoint.Count `json:"completion_tokens"`       // includes reasoning with most servers
	Total      endpoint.Count `json:"total_tokens"`            // shows whether Completion includes reasoning
	PromptHit  endpoint.Count `json:"prompt_cache_hit_tokens"` // DeepSeek's name for Cached
	PromptPart struct {
		Cached  endpoint.Count `json:"cached_tokens"`      // read from the cache
		Written endpoint.Count `json:"cache_write_tokens"` // written to the cache; only some servers report it
	} `json:"prompt_tokens_details"`
	CompletionPart struct {
		Reasoning endpoint.Count `json:"reasoning_tokens"` // tokens of reasoning, hidden or not
	} `json:"completion_tokens_details"`
}

// buckets maps the counts to the five buckets of protocol.Usage.
// Details that exceed their total are cut to it, so no bucket is negative.
func (w *wireUsage) buckets() *protocol.Usage {
	read := min(max(w.PromptPart.Cached, w.PromptHit), w.Prompt)
	written := min(w.PromptPart.Written, w.Prompt-read)
	reasoning := w.CompletionPart.Reasoning
	output := w.Completion
	// Some servers count reasoning beside the completion; their total gives them away.
	if reasoning > output || reasoning > 0 && w.Total == w.Prompt+w.Completion+reasoning {
		output = min(output+reasoning, endpoint.MaxCount)
	}
	return &protocol.Usage{
		Input:      int64(w.Prompt - read - written),
		Output:     int64(output),
		CacheRead:  int64(read),
		CacheWrite: int64(written),
		Reasoning:  int64(reasoning),
	}
}
