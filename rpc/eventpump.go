package rpc

import (
	"context"
	"encoding/json"
	"sync"

	"lashd/engine/daemonevents"
	"lashd/engine/feed"
	"lashd/rpc/protocol"
)

// spareBuffers are shared by all pumps, since a waiting pump needs no buffer.
var spareBuffers = sync.Pool{New: func() any { return new([]byte) }}

// largestSpare is the maximum size of a buffer that is kept for reuse, in bytes.
const largestSpare = 128 << 10

// writeEvents writes events of a session to the client as notifications, and waits while the client
// is slow. Without whole, it skips deltas. All frames share one buffer from the pool.
// Each event is already encoded as the params of session/event. An error means that the
// connection is about to end.
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

// follow starts the pump of a subscription after the response is written, so that the client gets
// the response first. A second subscription to a session replaces the first. It belongs to the
// worker.
// The pump runs until unfollow, the end of the connection, or an error of the subscription, which
// it closes in each case.
func (c *conn) follow(id protocol.SessionID, sub *feed.Subscription) {
	c.unfollow(id)
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	c.seat.follow(1)
	c.subs[id] = func() {
		cancel()
		<-done
		c.seat.follow(-1)
	}
	whole := !c.noDeltas
	c.after = append(c.after, func() {
		c.wg.Go(func() {
			defer close(done)
			c.pump(ctx, id, sub, whole)
		})
	})
}

// unfollow ends a subscription and waits until its pump has stopped; a later subscription may begin
// at an earlier event. It reports whether there was a subscription.
// Only the connection's worker may call it, and never the pump itself.
func (c *conn) unfollow(id protocol.SessionID) bool {
	end, ok := c.subs[id]
	if ok {
		end()
		delete(c.subs, id)
	}
	return ok
}

// pump writes a subscription's events to the client until the subscription ends. If the engine ends
// it, the client gets session/gap with the reason. Without whole, pump skips deltas.
func (c *conn) pump(ctx context.Context, id protocol.SessionID, sub *feed.Subscription, whole bool) {
	defer sub.Close()
	for {
		events, err := sub.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.notify(ctx, "session/gap", protocol.Gap{SessionID: id, Reason: err.Error()})
			}
			return
		}
		if c.writeEvents(ctx, events, whole) != nil {
			return
		}
	}
}

// pumpDaemonEvents writes daemon events to the client until the connection ends.
func (c *conn) pumpDaemonEvents(w *daemonevents.Watcher) {
	defer w.Close()
	for {
		news, err := w.Next(c.ctx)
		if err != nil {
			return
		}
		for _, e := range news {
			c.notify(c.ctx, "server/event", e)
		}
	}
}

// notify writes a notification. It waits while the client is slow, and logs errors, because the
// connection is about to end then.
// It is safe for concurrent use with responses and other notifications.
func (c *conn) notify(ctx context.Context, method string, params any) {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err == nil {
		err = c.stream.WriteRaw(ctx, raw)
	}
	if err != nil {
		c.log.Debug("could not write a notification", "method", method, "error", err)
	}
}

// isDelta reports whether an encoded event is a piece of streamed text.
func isDelta(event []byte) bool {
	var e struct {
		Type protocol.EventType `json:"type"`
	}
	return json.Unmarshal(event, &e) == nil && e.Type == protocol.EventItemDelta
}
