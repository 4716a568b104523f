package frame

import "sync"

// chunkSize is the number of bytes in one write. Waiting events are let in after each, while a long
// queue drains.
const chunkSize = 64 << 10

// chunk is a piece of the bytes to write. A message may begin in one chunk and end in another.
type chunk struct {
	n    int
	data [chunkSize]byte
}

// chunkPool is a pool of chunks for all connections. An idle connection holds none.
var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

// free returns a chunk to the pool after its bytes are written.
func (c *chunk) free() {
	c.n = 0
	chunkPool.Put(c)
}

// chunks is a queue of bytes. It grows by chunks, so it never copies queued bytes again.
type chunks []*chunk

// append copies p to the end of the queue.
func (q *chunks) append(p []byte) {
	for len(p) > 0 {
		if len(*q) == 0 || (*q)[len(*q)-1].n == chunkSize {
			*q = append(*q, chunkPool.Get().(*chunk))
		}
		tail := (*q)[len(*q)-1]
		n := copy(tail.data[tail.n:], p)
		tail.n += n
		p = p[n:]
	}
}

// pop removes the first chunk. The caller frees it. The queue must not be empty.
func (q *chunks) pop() *chunk {
	head := (*q)[0]
	n := copy(*q, (*q)[1:])
	(*q)[n] = nil
	*q = (*q)[:n]
	return head
}
