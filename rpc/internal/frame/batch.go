package frame

import "sync"

// maxBatch is the maximum number of entries in one array.
const maxBatch = 32

// batch collects the responses to the entries of one JSON-RPC array, in their order. JSON-RPC
// requires them in one array, so it is complete only with the last response. It is safe for
// concurrent use.
type batch struct {
	mu      sync.Mutex
	answers [][]byte // by entry; nil for notifications and for missing responses
	left    int      // entries without a result
}

// newBatch returns a batch of this many entries.
func newBatch(entries int) *batch {
	return &batch{answers: make([][]byte, entries), left: entries}
}

// put stores the response of one entry; nil means that it has none. With the last entry it returns
// the array of responses, or nil if the batch has no responses.
func (b *batch) put(place int, answer []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[place] = answer
	if b.left--; b.left > 0 {
		return nil
	}
	out := []byte{'['}
	for _, a := range b.answers {
		if a != nil {
			out = append(append(out, a...), ',')
		}
	}
	if len(out) == 1 {
		return nil
	}
	out[len(out)-1] = ']'
	return out
}
