package rpc

import (
	"context"
	"sync"
)

// spareBuffers are shared by all pumps: one that waits holds none.
var spareBuffers = sync.Pool{New: func() any { return new([]byte) }}

// largestSpare bounds what is kept: a long message would else leave its size with every pump that carried it.
const largestSpare = 128 << 10

// writeEvents writes events of a session to the client, without the deltas unless whole.
func (c *conn) writeEvents(ctx context.Context, events [][]byte, whole bool) error {
	spare := spareBuffers.Get().(*[]byte)
	buf := (*spare)[:0]
	frames := make([][]byte, 0, len(events))
	for _, e := range events {
		if !whole && isDelta(e) {
			continue
		}
		start := len(buf)
		buf = append(buf, `{"jsonrpc":"2.0","method":"session/event","params":`...)
		buf = append(append(buf, e...), '}')
		frames = append(frames, buf[start:len(buf):len(buf)])
	}
	err := c.stream.WriteRaw(ctx, frames...)
	if *spare = buf; cap(buf) <= largestSpare {
		spareBuffers.Put(spare)
	}
	return err
}
