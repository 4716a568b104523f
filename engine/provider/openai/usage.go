package openai

import (
	"strconv"

	"lashd/rpc/protocol"
)

// wireUsage is the token count in the forms that servers give it.
type wireUsage struct {
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	Total      count `json:"total_tokens"`
	PromptHit  count `json:"prompt_cache_hit_tokens"`
	PromptPart struct {
		Cached  count `json:"cached_tokens"`
		Written count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionPart struct {
		Reasoning count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// count is a number of tokens: never negative, and never so large that a sum of them could overflow.
type count int64

const maxCount = 1 << 40

// UnmarshalJSON implements json.Unmarshaler. What is no number counts nothing: a reply is worth more than its usage.
func (c *count) UnmarshalJSON(data []byte) error {
	n, _ := strconv.ParseFloat(string(data), 64) // 0 for what is no number, infinite for what is too large
	*c = count(min(max(n, 0), maxCount))
	return nil
}

func (w *wireUsage) buckets() *protocol.Usage {
	read := min(max(w.PromptPart.Cached, w.PromptHit), w.Prompt)
	written := min(w.PromptPart.Written, w.Prompt-read)
	reasoning := w.CompletionPart.Reasoning
	output := w.Completion
	// Some servers count reasoning beside the completion; their total gives them away.
	if reasoning > output || reasoning > 0 && w.Total == w.Prompt+w.Completion+reasoning {
		output = min(output+reasoning, maxCount)
	}
	return &protocol.Usage{
		Input:      int64(w.Prompt - read - written),
		Output:     int64(output),
		CacheRead:  int64(read),
		CacheWrite: int64(written),
		Reasoning:  int64(reasoning),
	}
}
