package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"lashd/engine/param"
	"lashd/engine/queue"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// TestQueueSize queues many inputs behind a turn.
func TestQueueSize(t *testing.T) {
	d := start(t, setup{model: replies(calls("hold")), tools: []tool.Provider{holding(nil)}})
	id := d.session(t)
	d.begin(t, id, "go")
	o := d.observe(t, id)
	grown := func() int64 {
		db, log := d.store.Sizes()
		return db + log
	}
	send := func(id protocol.SessionID, size int) error {
		_, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: text(strings.Repeat("x", size))})
		return err
	}
	t.Run("issue/2 an input at the size limit is accepted, and one byte more is rejected", func(t *testing.T) {
		if err := send(id, 4<<20+1); !errors.As(err, new(*param.Error)) {
			t.Errorf("one byte more: %v", err)
		}
		if err := send(d.session(t), 4<<20); err != nil {
			t.Error(err)
		}
	})
	before := grown()
	t.Run("issue/2 the queue is bounded", func(t *testing.T) {
		var err error
		taken := 0
		for ; err == nil; taken++ {
			err = send(id, 512)
		}
		if !errors.Is(err, queue.ErrFull) || taken != 256 {
			t.Errorf("input %d: %v", taken, err)
		}
	})
	t.Run("issue/2 the log grows with new inputs, not with the queue", func(t *testing.T) {
		if size := grown() - before; size > 12<<20 {
			t.Errorf("128 KiB of inputs took %d MiB", size>>20)
		}
	})
	t.Run("issue/2 queue events are replayed as they were sent", func(t *testing.T) {
		again := d.observe(t, id, 0)
		for _, each := range []*observer{o, again} {
			each.until(func(e protocol.Event) bool { return len(e.Queue) == 60 })
		}
		live, replayed := o.durable(), again.durable()
		replayed = replayed[max(0, slices.Index(replayed, live[0])):]
		if n := min(len(live), len(replayed)); n < 100 || !slices.Equal(live[:n], replayed[:n]) {
			t.Errorf("%d events live, %d replayed, which differ", len(live), len(replayed))
		}
	})
}
