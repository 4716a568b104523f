package feed

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// Subscription reads a session's events from a position on. One goroutine uses it; Close ends it.
type Subscription struct {
	feed   *Feed
	replay Replay
	pos    uint64
	seq    protocol.Seq  // of the last durable event handed out
	upTo   protocol.Seq  // read the log up to here before going on at pos
	sent   map[*Item]int // how much of an item was handed out
	behind []catchUp     // open items to bring up to date after the log
	taken  []entry       // of the feed, to hand out
	bytes  []byte        // of deltas that were handed out
}

// Replay reads the log after a seq: some events, and the seq of the last of them.
type Replay func(context.Context, protocol.Seq, int) ([][]byte, protocol.Seq, error)

// catchUp is how an open item stood when a subscriber's next event was gone.
type catchUp struct {
	item *Item
	text []byte
}

// Subscribe follows the feed from after a seq on. The items that are open now are answered with their text so far.
func (f *Feed) Subscribe(after protocol.Seq, replay Replay) (*Subscription, []protocol.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &Subscription{feed: f, replay: replay, seq: after, upTo: f.seq, sent: map[*Item]int{}}
	s.pos = f.base + uint64(len(f.entries))
	var open []protocol.Item
	for _, o := range f.open {
		s.sent[o] = len(o.text)
		item := o.item
		item.Text = string(o.text)
		open = append(open, item)
	}
	f.subs[s] = struct{}{}
	return s, open
}

// Tell has items that were open at the beginning come as events, after the log.
func (s *Subscription) Tell(open []protocol.Item) {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	for _, item := range open {
		for o, n := range s.sent {
			if o.item.ID == item.ID {
				s.behind = append(s.behind, catchUp{item: o, text: o.text[:n:n]})
				delete(s.sent, o)
			}
		}
	}
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

// Next waits for events and hands out the next ones, each the params of a session/event. It ends when ctx does, or
// when the session is deleted or the engine stops, once everything before was handed out. What it hands out is valid until
// it is called again.
func (s *Subscription) Next(ctx context.Context) ([][]byte, error) {
	for {
		again := s.feed.tip.Next()
		events, more, err := s.next(ctx)
		if len(events) > 0 || err != nil {
			return events, err
		}
		if more {
			continue
		}
		s.taken, s.bytes = nil, nil // whoever waits holds no memory
		select {
		case <-again:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errLogShort = errors.New("the log ends before the events that were to be read from it")

// next hands out what there is. More tells that there may be something though it has nothing.
func (s *Subscription) next(ctx context.Context) (events [][]byte, more bool, err error) {
	if s.seq < s.upTo {
		// Not beyond upTo: what was shown before those events comes from the feed, which has them, too.
		events, last, err := s.replay(ctx, s.seq, min(batch, int(s.upTo-s.seq)))
		if err == nil && len(events) == 0 {
			err = errLogShort
		}
		if err != nil {
			return nil, false, s.reason(err)
		}
		s.seq = last
		return events, false, nil
	}
	if len(s.behind) > 0 {
		return s.catchUp(), true, nil
	}
	more, err = s.takeFromFeed()
	return s.encoded(), more, err
}

// reason is why the feed ended, if that explains an error.
func (s *Subscription) reason(err error) error {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.feed.ended != nil {
		return s.feed.ended
	}
	return err
}

// takeFromFeed takes what the feed has next. What a subscriber that is behind must withdraw is among it.
func (s *Subscription) takeFromFeed() (more bool, err error) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	s.taken = s.taken[:0]
	if s.pos < f.base {
		s.resyncLocked()
		return true, nil
	}
	rest := f.entries[s.pos-f.base:]
	if len(rest) == 0 {
		return false, f.ended
	}
	rest = rest[:min(len(rest), batch)]
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
		s.taken = append(s.taken, e)
	}
	s.pos += uint64(len(rest))
	s.forgetLocked()
	f.trimLocked()
	return true, nil
}

// encoded are the events that were taken. Nobody waits for the feed meanwhile.
func (s *Subscription) encoded() [][]byte {
	events := make([][]byte, 0, len(s.taken))
	b := s.bytes[:0]
	for _, e := range s.taken {
		if e.grew == 0 {
			events = append(events, e.data)
			continue
		}
		start := len(b)
		b = e.item.appendDelta(b, e.data, e.end, e.grew)
		events = append(events, b[start:len(b):len(b)])
	}
	s.bytes = b
	return events
}

// forgetLocked drops items that are over: their last event lies before pos.
func (s *Subscription) forgetLocked() {
	if len(s.sent) <= len(s.feed.open) {
		return
	}
	if s.pos < s.feed.base+uint64(len(s.feed.entries)) {
		return // what is over may still have events to come
	}
	for o := range s.sent {
		if o.closed {
			delete(s.sent, o)
		}
	}
}

// resyncLocked is for a subscriber whose next event was dropped: it reads the durable ones from the log, is told how
// open items stand, then goes on at the end of the feed. What it missed of questions below comes first. What it was shown and was withdrawn since is withdrawn first,
// as the log may tell of items that came in its place under the same id.
func (s *Subscription) resyncLocked() {
	f := s.feed
	s.taken = f.missedLocked(s.pos)
	s.upTo = f.seq
	s.pos = f.base + uint64(len(f.entries))
	for o := range s.sent {
		if o.retracted {
			s.taken = append(s.taken, entry{data: o.withdrawal(f.id)})
		}
		if o.closed {
			delete(s.sent, o)
		}
	}
	s.behind = nil
	for _, o := range f.open {
		s.behind = append(s.behind, catchUp{item: o, text: o.text[:len(o.text):len(o.text)]})
	}
}

// missedLocked are the newest news of questions below, from a position on.
func (f *Feed) missedLocked(from uint64) (news []entry) {
	missed := slices.DeleteFunc(slices.Collect(maps.Values(f.below)), func(n notice) bool { return n.pos < from })
	slices.SortFunc(missed, func(a, b notice) int { return cmp.Compare(a.pos, b.pos) })
	for _, n := range missed {
		news = append(news, entry{data: n.data})
	}
	return news
}

func (s *Subscription) catchUp() [][]byte {
	var events [][]byte
	for _, c := range s.behind {
		sent, shown := s.sent[c.item]
		if !shown {
			events = append(events, c.item.start(s.feed.id))
		}
		if sent < len(c.text) {
			events = append(events, c.item.appendDelta(nil, c.text[sent:], len(c.text), now()))
		}
		s.sent[c.item] = len(c.text)
	}
	s.behind = nil
	return events
}
