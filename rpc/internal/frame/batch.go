package frame

import "sync"

const maxBatch = 32

// batch collects the answers to the entries of one array, in their order.
type batch struct {
	mu      sync.Mutex
	answers [][]byte // nil for what needs none
	left    int
}

func newBatch(entries int) *batch {
	return &batch{answers: make([][]byte, entries), left: entries}
}

// put settles one entry. With the last one it returns the array of answers, or nil if there are none.
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
