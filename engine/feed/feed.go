// Package feed delivers the events of a session to its subscribers as they happen, each at
// its own pace.
//
// The engine fills a feed. A subscriber that falls too far behind reads the durable events
// from the log and gets the text of open items in larger pieces.
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

// Limits of the events that a feed keeps for slow subscribers. Beyond them a subscriber
// reads the log.
const (
	// maxEntries is the number of events.
	maxEntries = 1 << 14
	// maxBytes is the size of these events in bytes.
	maxBytes = 2 << 20
)

// Feed holds the recent events of one session: durable events in the order of their seq,
// and transient events between them. It drops events that every subscriber has read. It is
// safe for concurrent use, and publishing never waits for a subscriber.
type Feed struct {
	id protocol.SessionID
	// tip notifies waiting subscribers of new events.
	tip tip.Tip

	mu      sync.Mutex
	entries []entry
	// base is the position of entries[0]. Positions count all events since the feed was
	// created.
	base uint64
	// bytes is the size of the data of entries.
	bytes int
	// seq is the number of the newest durable event.
	seq protocol.Seq
	// open has the growing items, oldest first.
	open []*Item
	subs map[*Subscription]struct{}
	// below has the newest event of each question of a subagent, until every subscriber has
	// read it.
	below map[protocol.DecisionID]notice
	// ended is the reason why no more events come. Nil: the feed is open.
	ended error
}

// entry is one event, encoded as the params of session/event. A delta holds only its text
// and is encoded when a subscriber reads it, because most of the memory for a slow
// subscriber would be repeated envelopes.
type entry struct {
	// data of a delta is a slice of the item's text.
	data []byte
	// seq is 0 for a transient event.
	seq protocol.Seq
	// item is the item that starts, grows or is retracted with the event, or nil.
	item *Item
	// end is the length of the item's text after the event.
	end int
	// grew is the time of a delta in milliseconds since 1970. It is 0 for other events.
	grew int64
}

// notice is the newest event about a question of a subagent. It is kept until every
// subscriber has read it, because a slow subscriber cannot read it from this session's log.
type notice struct {
	pos  uint64
	data []byte
}

// Item is an item whose text is still growing. It holds the complete text, which is never
// stored in this form. The mutex of its feed guards it.
type Item struct {
	item protocol.Item
	text []byte
	// prefix is the constant beginning of its encoded deltas, up to the time.
	prefix []byte
	// closed means that the item has ended.
	closed bool
	// retracted means that it ended without a durable event, so subscribers must remove it.
	retracted bool
}

// New returns the feed of a session that is not loaded. Call Restart before the first
// Subscribe.
func New(id protocol.SessionID) *Feed {
	return &Feed{id: id, subs: map[*Subscription]struct{}{}}
}

// Publish adds durable events with consecutive seqs that end with last. The open items in
// completed end because these events contain them. The items in retracted are withdrawn
// first. The engine calls it after each commit, in the order of commits.
func (f *Feed) Publish(events [][]byte, last protocol.Seq, completed, retracted []*Item) {
	if len(events)+len(completed)+len(retracted) == 0 {
		return
	}
	f.mu.Lock()
	f.endLocked(retracted, true)
	f.endLocked(completed, false)
	for i, data := range events {
		f.addLocked(entry{data: data, seq: last - protocol.Seq(len(events)-1-i)})
	}
	f.seq = last
	f.mu.Unlock()
	f.tip.Notify()
}

// Restart continues the feed after the newest seq in the store. Subscribers read the log up
// to there.
func (f *Feed) Restart(newest protocol.Seq) {
	f.mu.Lock()
	f.seq = newest
	f.dropLocked(len(f.entries))
	f.base++
	f.mu.Unlock()
	f.tip.Notify()
}

// Close ends the feed. Subscribers get why after the remaining events.
func (f *Feed) Close(why error) {
	f.mu.Lock()
	f.ended = why
	f.mu.Unlock()
	f.tip.Notify()
}

// Show adds a transient event: subscribers see it, but it is not stored.
func (f *Feed) Show(e protocol.Event) {
	e.SessionID, e.AtMs = f.id, now()
	data := encode(e)
	f.mu.Lock()
	f.addLocked(entry{data: data})
	f.mu.Unlock()
	f.tip.Notify()
}

// Surface adds an event about a question of a subagent. Unlike Show, slow subscribers also
// get it.
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

// Begin opens an item whose text will grow. It does not wake subscribers, because the first
// text follows at once.
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

// Grow appends text to an open item.
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

// ID returns the id of the item.
func (o *Item) ID() protocol.ItemID { return o.item.ID }

// Kind returns the kind of the item.
func (o *Item) Kind() protocol.ItemKind { return o.item.Kind }

// appendDelta appends the encoded delta event for text, which ends at offset end of the
// item's text.
func (o *Item) appendDelta(b []byte, text []byte, end int, atMs int64) []byte {
	b = append(b, o.prefix...)
	b = strconv.AppendInt(b, atMs, 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, int64(end-len(text)), 10)
	b = append(b, `,"text":`...)
	return append(appendQuoted(b, text), '}')
}

// End closes open items. With retract set, subscribers remove them. Items that have already
// ended are skipped.
func (f *Feed) End(items []*Item, retract bool) {
	if len(items) == 0 {
		return
	}
	f.mu.Lock()
	f.endLocked(items, retract)
	f.mu.Unlock()
	f.tip.Notify()
}

// endLocked is End with mu held.
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

// withdrawal returns the event that retracts the item.
func (o *Item) withdrawal(session protocol.SessionID) []byte {
	return encode(protocol.Event{
		SessionID: session, AtMs: now(), TurnID: o.item.TurnID, Type: protocol.EventItemRetracted, ItemID: o.item.ID,
	})
}

// start returns the event that starts the item, without text.
func (o *Item) start(session protocol.SessionID) []byte {
	return encode(protocol.Event{
		SessionID: session, AtMs: o.item.AtMs, TurnID: o.item.TurnID, Type: protocol.EventItemStarted, Item: &o.item,
	})
}

// addLocked appends an event and drops the oldest ones beyond the limits. Without
// subscribers it only counts. The caller holds mu.
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

// dropLocked drops the n oldest events. The caller holds mu.
func (f *Feed) dropLocked(n int) {
	for i := range n {
		f.bytes -= len(f.entries[i].data)
		f.entries[i] = entry{}
	}
	f.entries = f.entries[n:]
	f.base += uint64(n)
}

// trimLocked drops the events that every subscriber has read. The caller holds mu.
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

// Watched reports whether the feed has subscribers.
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

// appendQuoted appends s as a JSON string. It copies text that needs no escapes, which most
// text does not.
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
