// Package feed has the observers of a session see its events as they come, each at its own pace. The engine fills a feed, and reads the
// log for those that are too far behind.
package feed

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"lashd/engine/tip"
	"lashd/rpc/protocol"
)

// Bounds of what a feed keeps for subscribers that are behind. Beyond them a subscriber reads the log instead, and gets
// the text of open items in bigger pieces.
const (
	maxEntries = 1 << 14
	maxBytes   = 2 << 20
)

// Feed is what observers of one session see: the durable events in the order of their seq, and between them what is
// only shown. It keeps nothing that every subscriber has read. Safe for concurrent use; it never waits for a reader.
type Feed struct {
	id  protocol.SessionID
	tip tip.Tip

	mu      sync.Mutex
	entries []entry
	base    uint64 // position of entries[0]
	bytes   int
	seq     protocol.Seq // of the newest durable event
	open    []*Item      // in order of their start
	subs    map[*Subscription]struct{}
	below   map[protocol.DecisionID]notice
	ended   error // why nothing comes any more
}

// entry is one event, encoded as the params of session/event. A delta is only text until a subscriber takes it: most of
// what is kept for one that is behind would be the same words again and again.
type entry struct {
	data []byte       // of a delta: its text, which is a part of the item's
	seq  protocol.Seq // 0: not durable
	item *Item        // that begins, grows or is withdrawn with it
	end  int          // of the item's text then
	grew int64        // when, if it is a delta
}

// notice is the newest news of a question of a session below, kept until every subscriber has read it: no log has it for one
// that is behind.
type notice struct {
	pos  uint64
	data []byte
}

// Item is an item whose text is still growing. The text is whole; it is never written anywhere. Its feed guards it.
type Item struct {
	item      protocol.Item
	text      []byte
	prefix    []byte // of its delta events, up to the offset
	closed    bool
	retracted bool
}

// New is the feed of a session that is not loaded yet: nobody watches it before Restart.
func New(id protocol.SessionID) *Feed {
	return &Feed{id: id, subs: map[*Subscription]struct{}{}}
}

// Publish adds durable events, the last of which has the given seq. Open items that they tell of end with them; those
// of which nothing becomes are withdrawn before.
func (f *Feed) Publish(events [][]byte, last protocol.Seq, told, untold []*Item) {
	if len(events)+len(told)+len(untold) == 0 {
		return
	}
	f.mu.Lock()
	f.endLocked(untold, true)
	f.endLocked(told, false)
	for i, data := range events {
		f.addLocked(entry{data: data, seq: last - protocol.Seq(len(events)-1-i)})
	}
	f.seq = last
	f.mu.Unlock()
	f.tip.Notify()
}

// Restart goes on at a seq that the store says is the newest. Whoever follows reads the log again.
func (f *Feed) Restart(newest protocol.Seq) {
	f.mu.Lock()
	f.seq = newest
	f.dropLocked(len(f.entries))
	f.base++
	f.mu.Unlock()
	f.tip.Notify()
}

// Close ends the feed: nothing comes any more, for a reason.
func (f *Feed) Close(why error) {
	f.mu.Lock()
	f.ended = why
	f.mu.Unlock()
	f.tip.Notify()
}

// Show adds an event that is not durable.
func (f *Feed) Show(e protocol.Event) {
	e.SessionID, e.AtMs = f.id, now()
	data := encode(e)
	f.mu.Lock()
	f.addLocked(entry{data: data})
	f.mu.Unlock()
	f.tip.Notify()
}

// Surface adds news of a question of a session that works for this one.
func (f *Feed) Surface(e protocol.Event) {
	e.SessionID, e.TurnID, e.AtMs = f.id, "", now()
	data := encode(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.subs) == 0 {
		return
	}
	if f.below == nil {
		f.below = map[protocol.DecisionID]notice{}
	}
	f.below[e.Decision.ID] = notice{f.base + uint64(len(f.entries)), data}
	f.addLocked(entry{data: data})
	f.tip.Notify()
}

// Begin opens an item whose text will grow. Observers hear of it with its first text, which follows at once.
func (f *Feed) Begin(item protocol.Item) *Item {
	item.Status, item.AtMs = protocol.ItemInProgress, now()
	o := &Item{item: item}
	o.prefix = []byte(`{"sessionId":` + quote(string(f.id)) + `,"turnId":` + quote(string(item.TurnID)) +
		`,"type":"item/delta","itemId":` + quote(string(item.ID)) + `,"atMs":`)
	data := o.start(f.id)
	f.mu.Lock()
	f.open = append(f.open, o)
	f.addLocked(entry{data: data, item: o})
	f.mu.Unlock()
	return o
}

// Grow adds text to an open item.
func (f *Feed) Grow(o *Item, text string) {
	f.mu.Lock()
	offset := len(o.text)
	o.text = append(o.text, text...)
	if len(f.subs) > 0 {
		f.addLocked(entry{data: o.text[offset:len(o.text):len(o.text)], item: o, end: len(o.text), grew: now()})
	}
	f.mu.Unlock()
	f.tip.Notify()
}

// ID is the item's.
func (o *Item) ID() protocol.ItemID { return o.item.ID }

// Kind is the item's.
func (o *Item) Kind() protocol.ItemKind { return o.item.Kind }

// appendDelta appends the event that tells of text which came at a time and now ends the item's.
func (o *Item) appendDelta(b []byte, text []byte, end int, atMs int64) []byte {
	b = append(b, o.prefix...)
	b = strconv.AppendInt(b, atMs, 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, int64(end-len(text)), 10)
	b = append(b, `,"text":`...)
	return append(appendQuoted(b, text), '}')
}

// End closes open items. Retracted ones are withdrawn from whoever was shown them.
func (f *Feed) End(items []*Item, retract bool) {
	if len(items) == 0 {
		return
	}
	f.mu.Lock()
	f.endLocked(items, retract)
	f.mu.Unlock()
	f.tip.Notify()
}

func (f *Feed) endLocked(items []*Item, retract bool) {
	for _, o := range items {
		if o.closed {
			continue
		}
		f.open = slices.DeleteFunc(f.open, func(other *Item) bool { return other == o })
		o.closed, o.retracted = true, retract
		if retract {
			f.addLocked(entry{data: o.withdrawal(f.id), item: o, end: len(o.text)})
		}
	}
}

func (o *Item) withdrawal(session protocol.SessionID) []byte {
	return encode(protocol.Event{
		SessionID: session, AtMs: now(), TurnID: o.item.TurnID, Type: protocol.EventItemRetracted, ItemID: o.item.ID,
	})
}

func (o *Item) start(session protocol.SessionID) []byte {
	return encode(protocol.Event{
		SessionID: session, AtMs: o.item.AtMs, TurnID: o.item.TurnID, Type: protocol.EventItemStarted, Item: &o.item,
	})
}

func (f *Feed) addLocked(e entry) {
	if len(f.subs) == 0 {
		f.base++
		return
	}
	f.entries = append(f.entries, e)
	f.bytes += len(e.data)
	for len(f.entries) > maxEntries || f.bytes > maxBytes {
		f.dropLocked(1)
	}
}

func (f *Feed) dropLocked(n int) {
	for i := range n {
		f.bytes -= len(f.entries[i].data)
		f.entries[i] = entry{}
	}
	f.entries = f.entries[n:]
	f.base += uint64(n)
}

// trimLocked drops what every subscriber has read.
func (f *Feed) trimLocked() {
	least := f.base + uint64(len(f.entries))
	for s := range f.subs {
		least = min(least, s.pos)
	}
	if least > f.base {
		f.dropLocked(int(least - f.base))
	}
	if len(f.entries) == 0 {
		f.entries = nil
	}
	maps.DeleteFunc(f.below, func(_ protocol.DecisionID, n notice) bool { return n.pos < least })
}

// Watched tells whether anybody follows the feed.
func (f *Feed) Watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs) > 0
}

func now() int64 { return time.Now().UnixMilli() }

func encode(e protocol.Event) []byte {
	b, err := json.Marshal(e)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}

func quote(s string) string { return string(appendQuoted(nil, s)) }

// appendQuoted appends s as a JSON string. Most text needs no escapes and is copied as it is.
func appendQuoted[T string | []byte](b []byte, s T) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			q, _ := json.Marshal(string(s)) // strings always encode
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
