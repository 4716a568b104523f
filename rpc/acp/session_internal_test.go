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

// TestEventsThatComeAgain has a connection end while it is not known whose an event is, and more events come just then.
func TestEventsThatComeAgain(t *testing.T) {
	accepted := func(seq int) json.RawMessage {
		return fmt.Appendf(nil, `{"type":%q,"seq":%d,"turnId":"trn_%d"}`, protocol.EventTurnAccepted, seq, seq)
	}
	t.Run("runtime/K02 no event is taken for seen before one that is to come again", func(t *testing.T) {
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
			for range i * 5 { // the sending takes more or less long
				s.news.Lost()
			}
			for n, ev := range later {
				if s.news.Put(ev); n == i%len(later) {
					close(last) // the prompt was sent
				}
			}
			<-read
			if s.seen > 5 && s.view.inputs["trn_5"] == nil {
				t.Fatalf("try %d: event %d is taken for seen, and 5 was not handled", i, s.seen)
			}
		}
	})
}
