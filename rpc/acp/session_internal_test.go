package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"

	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// TestEventsThatComeAgain ends a connection while an event cannot be matched to
// its prompt yet, with more events arriving at the same time.
func TestEventsThatComeAgain(t *testing.T) {
	accepted := func(seq int) json.RawMessage {
		return fmt.Appendf(nil, `{"type":%q,"seq":%d,"turnId":"trn_%d"}`, protocol.EventTurnAccepted, seq, seq)
	}
	t.Run("runtime/K02 no event is marked as seen while an earlier one still has to be handled", func(t *testing.T) {
		near, far := net.Pipe()
		far.Close()
		gone := &link{Client: client.New(t.Context(), near, nil, nil)}
		<-gone.Gone()
		var later []json.RawMessage
		for seq := range 40 {
			later = append(later, accepted(6+seq))
		}
		for i := range 2000 {
			last := make(chan struct{})
			s := &session{link: gone, news: client.NewInbox(0), view: newView("/"), prompts: prompts{last: last}}
			s.news.Put(accepted(5))
			read := make(chan struct{})
			go func() {
				defer close(read)
				s.read(context.WithoutCancel(t.Context()))
			}()
			for range i * 5 { // vary the time until the prompt is sent
				s.news.Lost()
			}
			for n, ev := range later {
				if s.news.Put(ev); n == i%len(later) {
					close(last) // the prompt was sent
				}
			}
			<-read
			if s.seen > 5 && s.view.inputs["trn_5"] == nil {
				t.Fatalf("try %d: event %d is marked as seen, but event 5 was not handled", i, s.seen)
			}
		}
	})
}
