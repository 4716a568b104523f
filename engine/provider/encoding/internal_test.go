package encoding

import (
	"encoding/json"
	"fmt"
	"lashd/rpc/protocol"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzQuote(f *testing.F) {
	f.Add("a\"\\\n\t\r\x00\x7f\u2028\xff→")
	f.Fuzz(func(t *testing.T, text string) {
		var got string
		if err := json.Unmarshal(Quote(nil, text), &got); err != nil {
			t.Fatalf("Quote(%q) is no JSON: %v", text, err)
		}
		want := strings.ToValidUTF8(text, "\uFFFD")
		if utf8.ValidString(text) && got != want || !utf8.ValidString(got) {
			t.Errorf("Quote(%q) reads as %q", text, got)
		}
	})
}

func TestHistoryIsBounded(t *testing.T) {
	var h History
	big := protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: strings.Repeat("x", 3<<20)}}}
	for i := range 200 {
		m := big
		if i < 100 {
			m.Parts = []protocol.Part{{Kind: protocol.PartText, Text: "small"}}
		}
		h.Encode(Key{protocol.SessionID(fmt.Sprint(i)), "m"}, []*protocol.Message{&m}, func(b []byte, m *protocol.Message) []byte {
			return append(b, m.Parts[0].Text...)
		})
		sum := 0
		for e := h.recent.Front(); e != nil; e = e.Next() {
			sum += cap(e.Value.(*thread).data)
		}
		if n := h.recent.Len(); n > historySessions || n != len(h.threads) || sum > historyBytes || sum != h.bytes {
			t.Fatalf("after %d sessions: %d kept, %d in the map, %d bytes of %d counted", i+1, n, len(h.threads), sum, h.bytes)
		}
	}
	if h.recent.Len() < 2 {
		t.Errorf("%d sessions kept, want several", h.recent.Len())
	}
}

// TestHistoryReads writes a message that waits for its attachment, and a message of another conversation, which must not wait for it.
func TestHistoryReads(t *testing.T) {
	var h History
	reading, read := make(chan struct{}), make(chan struct{})
	message := func(text string) []*protocol.Message {
		return []*protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}}
	}
	slow := make(chan string, 1)
	go func() {
		slow <- string(h.Encode(Key{"slow", "m"}, message("a"), func(b []byte, m *protocol.Message) []byte {
			close(reading)
			<-read
			return append(b, m.Parts[0].Text...)
		}))
	}()
	<-reading
	other := make(chan string, 1)
	go func() {
		other <- string(h.Encode(Key{"other", "m"}, message("b"), func(b []byte, m *protocol.Message) []byte { return append(b, m.Parts[0].Text...) }))
	}()
	select {
	case got := <-other:
		if got != "b" {
			t.Errorf("the other conversation is %q", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("runtime/S15 a conversation waits while an attachment of another one is read")
	}
	close(read)
	if got := <-slow; got != "a" {
		t.Errorf("the conversation with the attachment is %q", got)
	}
}
