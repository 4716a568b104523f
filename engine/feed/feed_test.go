package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/rpc/protocol"
)

// noLog is a Replay that must not be called.
func noLog(context.Context, protocol.Seq, int) ([][]byte, protocol.Seq, error) {
	return nil, 0, errors.New("the log is read")
}

// durable returns a stored event.
func durable(seq int) []byte { return fmt.Appendf(nil, `{"type":"turn/completed","seq":%d}`, seq) }

// next returns the next events of a subscription in short form.
func next(t *testing.T, s *Subscription) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	events, err := s.Next(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, data := range events {
		all = append(all, words(t, data))
	}
	return all
}

func words(t *testing.T, data []byte) string {
	t.Helper()
	var e struct {
		Type     string
		Seq      int
		ItemID   string
		Offset   int
		Text     string
		Item     *protocol.Item
		Decision *protocol.Decision
	}
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	switch {
	case e.Seq > 0:
		return fmt.Sprintf("%s %d", e.Type, e.Seq)
	case e.Item != nil:
		return fmt.Sprintf("%s %s", e.Type, e.Item.ID)
	case e.Decision != nil:
		return fmt.Sprintf("%s %s %s", e.Type, e.Decision.ID, e.Text)
	case e.Type == "item/delta":
		return fmt.Sprintf("%s %s %d %s", e.Type, e.ItemID, e.Offset, e.Text)
	}
	return strings.TrimSpace(e.Type + " " + e.ItemID + e.Text)
}

func is(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func newFeed(newest protocol.Seq) *Feed {
	f := New("ses_a")
	f.Restart(newest)
	return f
}

func TestSubscribersGetEventsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(4)
		a, open := f.Subscribe(4, noLog)
		defer a.Close()
		if open != nil || !f.Watched() {
			t.Errorf("open are %+v, watched %v; want none, true", open, f.Watched())
		}
		f.Publish([][]byte{durable(5), durable(6)}, 6, nil, nil)
		item := f.Begin(protocol.Item{ID: "itm_a", TurnID: "trn_a"})
		f.Grow(item, "one ")
		f.Grow(item, "\"two\"")
		f.Publish([][]byte{durable(7)}, 7, []*Item{item}, nil)
		is(t, next(t, a), "turn/completed 5", "turn/completed 6", "item/started itm_a", "item/delta itm_a 0 one ", `item/delta itm_a 4 "two"`, "turn/completed 7")
		is(t, next(t, a), "context deadline exceeded")
		if f.entries != nil || f.bytes != 0 {
			t.Errorf("%d entries of %d bytes are kept though everybody has read them", len(f.entries), f.bytes)
		}
	})
}

func TestSubscriberReadsTheLogFirst(t *testing.T) {
	f := newFeed(2)
	log := func(_ context.Context, after protocol.Seq, n int) ([][]byte, protocol.Seq, error) {
		if after != 0 || n != 2 {
			t.Errorf("%d events after %d are read, want 2 after 0", n, after)
		}
		return [][]byte{durable(1), durable(2)}, 2, nil
	}
	s, _ := f.Subscribe(0, log)
	defer s.Close()
	f.Publish([][]byte{durable(3)}, 3, nil, nil)
	is(t, next(t, s), "turn/completed 1", "turn/completed 2")
	is(t, next(t, s), "turn/completed 3")
	short, _ := f.Subscribe(0, func(context.Context, protocol.Seq, int) ([][]byte, protocol.Seq, error) { return nil, 0, nil })
	defer short.Close()
	is(t, next(t, short), "the event log ends before the expected events")
}

func TestSubscribeReturnsOpenItems(t *testing.T) {
	f := newFeed(0)
	item := f.Begin(protocol.Item{ID: "itm_a"})
	f.Grow(item, "one ")
	s, open := f.Subscribe(0, noLog)
	defer s.Close()
	if len(open) != 1 || open[0].ID != "itm_a" || open[0].Text != "one " {
		t.Errorf("open are %+v, want itm_a with its text", open)
	}
	f.Grow(item, "two")
	is(t, next(t, s), "item/delta itm_a 4 two")
	f.End([]*Item{item}, true)
	f.End([]*Item{item}, true) // the item has already ended
	is(t, next(t, s), "item/retracted itm_a")
	late, open := f.Subscribe(0, noLog)
	defer late.Close()
	if open != nil {
		t.Errorf("open are %+v, want none", open)
	}
}

func TestTellSendsOpenItemsAsEvents(t *testing.T) {
	f := newFeed(0)
	item := f.Begin(protocol.Item{ID: "itm_a"})
	f.Grow(item, "one ")
	s, open := f.Subscribe(0, noLog)
	defer s.Close()
	s.Tell(open)
	f.Grow(item, "two")
	is(t, next(t, s), "item/started itm_a", "item/delta itm_a 0 one ")
	is(t, next(t, s), "item/delta itm_a 4 two")
}

func TestSlowSubscriberReadsTheLog(t *testing.T) {
	f := newFeed(0)
	read := 0
	s, _ := f.Subscribe(0, func(_ context.Context, after protocol.Seq, n int) ([][]byte, protocol.Seq, error) {
		read++
		return [][]byte{durable(1)}, 1, nil
	})
	defer s.Close()
	lost, kept := f.Begin(protocol.Item{ID: "itm_lost"}), f.Begin(protocol.Item{ID: "itm_kept"})
	f.Grow(lost, "never")
	is(t, next(t, s), "item/started itm_lost", "item/started itm_kept", "item/delta itm_lost 0 never")
	f.Publish([][]byte{durable(1)}, 1, nil, []*Item{lost})
	f.Surface(protocol.Event{Type: protocol.EventDecisionOpened, Text: "new", Decision: &protocol.Decision{ID: "dec_a"}})
	f.Grow(kept, strings.Repeat("x", maxBytes))
	f.Grow(kept, "y") // earlier events are dropped
	is(t, next(t, s), "decision/opened dec_a new", "item/retracted itm_lost")
	is(t, next(t, s), "turn/completed 1")
	got := next(t, s)
	if len(got) != 1 || got[0] != "item/delta itm_kept 0 "+strings.Repeat("x", maxBytes)+"y" || read != 1 {
		t.Errorf("got %d events, the log read %d times; want the whole text of itm_kept in one, 1 time", len(got), read)
	}
}

func TestFeedEndsAfterItsEvents(t *testing.T) {
	f := newFeed(0)
	s, _ := f.Subscribe(0, noLog)
	f.Show(protocol.Event{Type: protocol.EventRetryStatus, Text: "soon"})
	f.Close(errors.New("deleted"))
	is(t, next(t, s), "retry/status soon")
	is(t, next(t, s), "deleted")
	s.Close()
	f.Show(protocol.Event{Type: protocol.EventRetryStatus})
	if f.Watched() || f.entries != nil {
		t.Errorf("watched %v, %d entries; want false, 0", f.Watched(), len(f.entries))
	}
}
