package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"lashd/engine/feed"
	"lashd/rpc/protocol"
)

// observer subscribes to a session and keeps the events.
type observer struct {
	t     testing.TB
	first *protocol.SessionAttachResult
	sub   *feed.Subscription
	raw   [][]byte
	all   []protocol.Event
	read  int // of all, by until
}

// observe attaches to a session: from now on, or from after a seq.
func (d *daemon) observe(t testing.TB, id protocol.SessionID, after ...protocol.Seq) *observer {
	t.Helper()
	p := &protocol.SessionAttachParams{SessionID: id}
	if len(after) > 0 {
		p.AfterSeq = &after[0]
	}
	first, sub, err := d.Sessions.Attach(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Close)
	return &observer{t: t, first: first, sub: sub}
}

// until reads up to the first event that fits and returns it.
func (o *observer) until(fits func(protocol.Event) bool) protocol.Event {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 20*time.Second)
	defer cancel()
	for {
		for ; o.read < len(o.all); o.read++ {
			if fits(o.all[o.read]) {
				o.read++
				return o.all[o.read-1]
			}
		}
		batch, err := o.sub.Next(ctx)
		if err != nil {
			o.t.Fatalf("after %v: %v", types(o.all), err)
		}
		for _, raw := range batch {
			var e protocol.Event
			if err := json.Unmarshal(raw, &e); err != nil {
				o.t.Fatalf("%s: %v", raw, err)
			}
			o.raw, o.all = append(o.raw, slices.Clone(raw)), append(o.all, e)
		}
	}
}

func (o *observer) typed(want protocol.EventType) protocol.Event {
	o.t.Helper()
	return o.until(func(e protocol.Event) bool { return e.Type == want })
}

// over reads until the end of a turn.
func (o *observer) over(id protocol.TurnID) protocol.Event {
	o.t.Helper()
	return o.until(func(e protocol.Event) bool { return e.Type == protocol.EventTurnCompleted && e.TurnID == id })
}

// durable returns the events with a seq, in the order of arrival.
func (o *observer) durable() []string {
	var kept []string
	for i, e := range o.all {
		if e.Seq != 0 {
			kept = append(kept, string(o.raw[i]))
		}
	}
	return kept
}

// gapless checks that seqs have no gaps.
func (o *observer) gapless(from protocol.Seq) {
	o.t.Helper()
	for _, e := range o.all {
		if e.Seq == 0 {
			continue
		}
		if from++; e.Seq != from {
			o.t.Errorf("%s has seq %d, want %d", e.Type, e.Seq, from)
		}
	}
}

func (o *observer) of(want protocol.EventType) []protocol.Event {
	return slices.DeleteFunc(slices.Clone(o.all), func(e protocol.Event) bool { return e.Type != want })
}

func types(events []protocol.Event) []protocol.EventType {
	var all []protocol.EventType
	for _, e := range events {
		if len(all) == 0 || e.Type != protocol.EventItemDelta || all[len(all)-1] != e.Type {
			all = append(all, e.Type)
		}
	}
	return all
}

// history returns what a person sees of a session, as role and text.
func (d *daemon) history(t testing.TB, id protocol.SessionID) []string {
	t.Helper()
	res := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
	return lines(res.Data)
}

func lines(items []protocol.Item) (all []string) {
	for _, item := range items {
		line := string(item.Kind) + ": " + item.Text
		switch {
		case item.Output != nil:
			line = string(item.Kind) + " " + item.Tool + ": " + string(item.Output.Status)
		case item.Tool != "":
			line = string(item.Kind) + " " + item.Tool
		}
		all = append(all, line)
	}
	return all
}
