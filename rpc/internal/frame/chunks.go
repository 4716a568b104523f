package frame

import "sync"

// chunkSize is how much is written at a time, so that room is made while a long queue drains.
const chunkSize = 64 << 10

// chunk is a piece of the bytes to be written. A message may begin in one and end in another.
type chunk struct {
	n    int
	data [chunkSize]byte
}

// spare chunks are shared by all connections: one that is idle holds none.
var spare = sync.Pool{New: func() any { return new(chunk) }}

// free gives a chunk back once its bytes are written.
func (c *chunk) free() {
	c.n = 0
	spare.Put(c)
}

// chunks is a queue of bytes. It does not move them again when it grows.
type chunks []*chunk

func (q *chunks) append(p []byte) {
	for len(p) > 0 {
		if len(*q) == 0 || (*q)[len(*q)-1].n == chunkSize {
			*q = append(*q, spare.Get().(*chunk))
		}
		tail := (*q)[len(*q)-1]
		n := copy(tail.data[tail.n:], p)
		tail.n += n
		p = p[n:]
	}
}

func (q *chunks) pop() *chunk {
	head := (*q)[0]
	n := copy(*q, (*q)[1:])
	(*q)[n] = nil
	*q = (*q)[:n]
	return head
}
