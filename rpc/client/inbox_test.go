package client

import (
	"encoding/json"
	"testing"
)

func TestInboxIsBounded(t *testing.T) {
	event := json.RawMessage(`"12345678"`) // of ten bytes
	t.Run("issue/6-3 an event without room is dropped, and all later ones", func(t *testing.T) {
		b := NewInbox(25)
		for i, full := range []bool{false, false, true, false} {
			if b.Put(event) != full {
				t.Errorf("event %d: it is full: %t", i, !full)
			}
		}
		if n := len(b.Take()); n != 2 || !b.Lost() {
			t.Errorf("%d are held, and lost is %t", n, b.Lost())
		}
		if b.Put(event) || len(b.Take()) != 0 || !b.Lost() {
			t.Error("it takes more, although some are missing")
		}
	})
	t.Run("issue/6-3 taking events makes room", func(t *testing.T) {
		b := NewInbox(25)
		for range 100 {
			b.Put(event)
			b.Take()
		}
		if b.Lost() {
			t.Error("some are missing")
		}
	})
	t.Run("issue/6-3 a single event is kept whatever its size", func(t *testing.T) {
		b := NewInbox(5)
		b.Put(event)
		if len(b.Take()) != 1 || b.Lost() {
			t.Error("it is missing")
		}
	})
}
