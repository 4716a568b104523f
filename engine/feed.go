package engine

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"lashd/engine/graph"
	"lashd/engine/tip"
	"lashd/rpc/protocol"
)

// Bounds of what a feed keeps for subscribers that are behind. Beyond them a subscriber reads the log instead, and gets
// the text of open items in bigger pieces.
const (
	feedEntries = 1 << 14
	feedBytes   = 8 << 20
)

// feed is what observers of one session see: the durable events in the order of their seq, and between them what is
// only shown. It keeps nothing that every subscriber has read. Safe for concurrent use; it never waits for a reader.
type feed struct {
	id  protocol.SessionID
	tip tip.Tip

	mu      sync.Mutex
	entries []entry
	base    uint64 // position of entries[0]
	bytes   int
	seq     protocol.Seq // of the newest durable event
	open    []*openItem  // in order of their start
	subs    map[*Subscription]struct{}
}

// entry is one event, encoded as the params of session/event.
type entry struct {
	data []byte
	seq  protocol.Seq // 0: not durable
	item *openItem    // of a delta
	end  int          // of the delta in the item's text
}

// openItem is an item whose text is still growing. The text is whole; it is never written anywhere.
type openItem struct {
	item   protocol.Item
	text   []byte
	prefix []byte // of its delta events, up to the offset
}

func newFeed(id protocol.SessionID, seq protocol.Seq) *feed {
	return &feed{id: id, seq: seq, subs: map[*Subscription]struct{}{}}
}

// publish adds durable events, the last of which has the given seq.
func (f *feed) publish(events [][]byte, last protocol.Seq) {
	f.mu.Lock()
	for i, data := range events {
		f.addLocked(entry{data: data, seq: last - protocol.Seq(len(events)-1-i)})
	}
	f.seq = last
	f.mu.Unlock()
	f.tip.Notify()
}

// show adds an event that is not durable.
func (f *feed) show(e protocol.Event) {
	e.SessionID, e.AtMs = f.id, now()
	data := encode(e)
	f.mu.Lock()
	f.addLocked(entry{data: data})
	f.mu.Unlock()
	f.tip.Notify()
}

// begin opens an item whose text will grow.
func (f *feed) begin(item protocol.Item) *openItem {
	item.Status, item.AtMs = protocol.ItemInProgress, now()
	o := &openItem{item: item}
	o.prefix = []byte(`{"sessionId":` + quote(string(f.id)) + `,"turnId":` + quote(string(item.TurnID)) +
		`,"type":"item/delta","itemId":` + quote(string(item.ID)) + `,"atMs":`)
	data := encode(protocol.Event{SessionID: f.id, AtMs: item.AtMs, TurnID: item.TurnID, Type: protocol.EventItemStarted, Item: &item})
	f.mu.Lock()
	f.open = append(f.open, o)
	f.addLocked(entry{data: data})
	f.mu.Unlock()
	f.tip.Notify()
	return o
}

// grow adds text to an open item.
func (f *feed) grow(o *openItem, text string) {
	f.mu.Lock()
	offset := len(o.text)
	o.text = append(o.text, text...)
	f.addLocked(entry{data: o.delta(offset, text), item: o, end: len(o.text)})
	f.mu.Unlock()
	f.tip.Notify()
}

func (o *openItem) delta(offset int, text string) []byte {
	b := make([]byte, 0, len(o.prefix)+len(text)+48)
	b = append(b, o.prefix...)
	b = strconv.AppendInt(b, now(), 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, int64(offset), 10)
	b = append(b, `,"text":`...)
	return append(appendQuoted(b, text), '}')
}

// end closes open items. Retracted ones are withdrawn from whoever was shown them.
func (f *feed) end(items []*openItem, retract bool) {
	f.mu.Lock()
	for _, o := range items {
		for i := range f.open {
			if f.open[i] == o {
				f.open = append(f.open[:i:i], f.open[i+1:]...)
				break
			}
		}
		if retract {
			f.addLocked(entry{data: encode(protocol.Event{
				SessionID: f.id, AtMs: now(), TurnID: o.item.TurnID, Type: protocol.EventItemRetracted, ItemID: o.item.ID,
			})})
		}
	}
	f.mu.Unlock()
	f.tip.Notify()
}

func (f *feed) addLocked(e entry) {
	if len(f.subs) == 0 {
		f.base++
		return
	}
	f.entries = append(f.entries, e)
	f.bytes += len(e.data)
	for len(f.entries) > feedEntries || f.bytes > feedBytes {
		f.dropLocked(1)
	}
}

func (f *feed) dropLocked(n int) {
	for i := range n {
		f.bytes -= len(f.entries[i].data)
		f.entries[i] = entry{}
	}
	f.entries = f.entries[n:]
	f.base += uint64(n)
}

// trimLocked drops what every subscriber has read.
func (f *feed) trimLocked() {
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
}

// openItems are the open items with their text so far.
func (f *feed) openItems() []protocol.Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.openItemsLocked()
}

func (f *feed) openItemsLocked() []protocol.Item {
	var items []protocol.Item
	for _, o := range f.open {
		item := o.item
		item.Text = string(o.text)
		items = append(items, item)
	}
	return items
}

func (f *feed) watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs) > 0
}

// Subscription reads a session's events from a position on. One goroutine uses it; Close ends it.
type Subscription struct {
	feed   *feed
	replay func(context.Context, protocol.Seq, int) ([][]byte, protocol.Seq, error)
	pos    uint64
	seq    protocol.Seq // of the last durable event handed out
	upTo   protocol.Seq // read the log up to here before going on at pos
	sent   map[*openItem]int
	behind []catchUp // open items to bring up to date after the log
}

type catchUp struct {
	item *openItem
	text string
}

// subscribe follows the feed from after a seq on.
func (f *feed) subscribe(after protocol.Seq, replay func(context.Context, protocol.Seq, int) ([][]byte, protocol.Seq, error)) *Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &Subscription{feed: f, replay: replay, seq: after, upTo: f.seq, sent: map[*openItem]int{}}
	s.pos = f.base + uint64(len(f.entries))
	for _, o := range f.open {
		s.sent[o] = len(o.text)
	}
	f.subs[s] = struct{}{}
	return s
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	delete(s.feed.subs, s)
	s.feed.trimLocked()
}

// batch bounds how many events Next hands out at once.
const batch = 256

// Next waits for events and hands out the next ones, each the params of a session/event. It ends when ctx does.
func (s *Subscription) Next(ctx context.Context) ([][]byte, error) {
	for {
		again := s.feed.tip.Next()
		events, err := s.next(ctx)
		if len(events) > 0 || err != nil {
			return events, err
		}
		select {
		case <-again:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Subscription) next(ctx context.Context) ([][]byte, error) {
	if s.seq < s.upTo {
		events, last, err := s.replay(ctx, s.seq, batch)
		if err == nil && len(events) > 0 {
			s.seq = last
			return events, nil
		}
		return nil, err
	}
	if len(s.behind) > 0 {
		return s.catchUp(), nil
	}
	return s.fromFeed(), nil
}

func (s *Subscription) fromFeed() [][]byte {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.pos < f.base {
		s.resyncLocked()
		return nil
	}
	rest := f.entries[s.pos-f.base:]
	rest = rest[:min(len(rest), batch)]
	events := make([][]byte, 0, len(rest))
	for _, e := range rest {
		if e.seq != 0 {
			if e.seq <= s.seq {
				continue // the log had it already
			}
			s.seq = e.seq
		}
		if e.item != nil {
			s.sent[e.item] = e.end
		}
		events = append(events, e.data)
	}
	s.pos += uint64(len(rest))
	f.trimLocked()
	return events
}

// resyncLocked is for a subscriber whose next event was dropped: it reads the durable ones from the log, then goes on
// at the end of the feed.
func (s *Subscription) resyncLocked() {
	f := s.feed
	s.upTo = f.seq
	s.pos = f.base + uint64(len(f.entries))
	f.tip.Notify() // the caller looks again
	for _, o := range f.open {
		s.behind = append(s.behind, catchUp{o, string(o.text)})
	}
}

func (s *Subscription) catchUp() [][]byte {
	var events [][]byte
	for _, c := range s.behind {
		sent, shown := s.sent[c.item]
		if !shown {
			events = append(events, encode(protocol.Event{SessionID: s.feed.id, AtMs: c.item.item.AtMs,
				TurnID: c.item.item.TurnID, Type: protocol.EventItemStarted, Item: &c.item.item}))
		}
		if sent < len(c.text) {
			events = append(events, c.item.delta(sent, c.text[sent:]))
		}
		s.sent[c.item] = len(c.text)
	}
	s.behind = nil
	return events
}

func now() int64 { return time.Now().UnixMilli() }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}

func quote(s string) string { return string(appendQuoted(nil, s)) }

// appendQuoted appends s as a JSON string. Most text needs no escapes and is copied as it is.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			q, _ := json.Marshal(s) // strings always encode
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// ref is how a log event names the item it is about.
type ref = graph.Ref
