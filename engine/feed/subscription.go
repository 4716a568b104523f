package feed

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// Subscription reads the events of a session from a position on. It moves through three
// sources: the log up to upTo, then the texts in behind, then the feed at pos. One
// goroutine calls Next and Close. The feed's mutex guards the fields that Feed reads.
type Subscription struct {
	feed   *Feed
	replay Replay
	// pos is the position of the next event in the feed.
	pos uint64
	// seq is the number of the last durable event that Next returned.
	seq protocol.Seq
	// upTo is the seq up to which the log is read before the feed.
	upTo protocol.Seq
	// sent has the number of bytes of each item that Next has returned.
	sent map[*Item]int
	// behind has the open items whose missing text follows the log.
	behind []catchUp
	// taken has the entries of the feed that Next is about to return.
	taken []entry
	// bytes is the buffer of encoded deltas that Next returned.
	bytes []byte
}

// Replay reads up to a number of durable events after a seq from the log. It returns them
// with the seq of the last one.
type Replay func(context.Context, protocol.Seq, int) ([][]byte, protocol.Seq, error)

// catchUp is the text of an open item at the time when a subscriber lost events.
type catchUp struct {
	item *Item
	text []byte
}

// Subscribe returns a subscription to the events after a seq, and the items that are open
// now with their text so far. The caller closes the subscription.
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

// Tell makes items that Subscribe returned come as events after the log, for clients that
// did not get them in the answer. Call it before Next.
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

// Close ends the subscription and frees the events that were kept for it.
func (s *Subscription) Close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	delete(s.feed.subs, s)
	s.feed.trimLocked()
}

// batch is the number of events that Next returns at most.
const batch = 256

// Next waits for events and returns them, each as the params of session/event. The result
// is valid until the next call. It fails when ctx ends. After Feed.Close it first returns
// the remaining events and then the reason.
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
		s.taken, s.bytes = nil, nil // hold no memory while waiting
		select {
		case <-again:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// errLogShort means that the log lacks events that the feed has published.
var errLogShort = errors.New("the event log ends before the expected events")

// next returns the events that are available without waiting. more asks to be called again
// even if it returns none.
func (s *Subscription) next(ctx context.Context) (events [][]byte, more bool, err error) {
	if s.seq < s.upTo {
		// Stop at upTo. Later durable events come from the feed, in order with the transient ones.
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

// reason returns the reason why the feed ended, or err if it has not.
func (s *Subscription) reason(err error) error {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.feed.ended != nil {
		return s.feed.ended
	}
	return err
}

// takeFromFeed moves the next events of the feed to taken. If the next event was dropped,
// it resynchronizes.
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
				continue // already returned from the log
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

// encoded returns the taken events and encodes deltas. It runs without the lock of the
// feed.
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

// forgetLocked removes closed items from sent once their last event was read.
func (s *Subscription) forgetLocked() {
	if len(s.sent) <= len(s.feed.open) {
		return
	}
	if s.pos < s.feed.base+uint64(len(s.feed.entries)) {
		return // closed items may still have unread events
	}
	for o := range s.sent {
		if o.closed {
			delete(s.sent, o)
		}
	}
}

// resyncLocked restores a subscription whose next event was dropped. It first returns
// retractions and the missed questions of subagents. Then come durable events from the log,
// the text of open items, and the feed. Retractions come first, because the log may have
// new items with the same ids.
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

// missedLocked returns the newest event of each question of a subagent from a position on.
func (f *Feed) missedLocked(from uint64) (news []entry) {
	missed := slices.DeleteFunc(slices.Collect(maps.Values(f.below)), func(n notice) bool { return n.pos < from })
	slices.SortFunc(missed, func(a, b notice) int { return cmp.Compare(a.pos, b.pos) })
	for _, n := range missed {
		news = append(news, entry{data: n.data})
	}
	return news
}

// catchUp returns events with the missing text of the items in behind.
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
