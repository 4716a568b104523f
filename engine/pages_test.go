package engine_test

import (
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// TestLargePages reads a session with large messages. A page holds at most 4 MiB plus its last message.
func TestLargePages(t *testing.T) {
	const size, all, most = 1 << 20, 12, 5
	d := start(t, with())
	id := d.session(t)
	text := strings.Repeat("x", size)
	for range all {
		must[*protocol.GraphAppendResult](t)(d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: summary(text)}))
	}
	t.Run("issue/2 pages of a session are bounded", func(t *testing.T) {
		first, sub, err := d.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		sub.Close()
		got, pages := len(first.Items), 1 // the last has what the session began with
		for cursor := first.NextCursor; cursor != ""; pages++ {
			page := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id, Cursor: cursor}))
			if len(page.Data) > most {
				t.Errorf("a page of %d messages", len(page.Data))
			}
			got, cursor = got+len(page.Data), page.NextCursor
		}
		if len(first.Items) > most || got != all || pages != 4 {
			t.Errorf("a snapshot of %d, then %d messages in %d pages", len(first.Items), got, pages)
		}
	})
	t.Run("issue/2 replays of a session are bounded", func(t *testing.T) {
		var none protocol.Seq
		first, sub, err := d.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id, AfterSeq: &none})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		for seq := protocol.Seq(0); seq < first.Seq; {
			events, err := sub.Next(t.Context())
			bytes := 0
			for _, e := range events {
				bytes += len(e)
			}
			if seq += protocol.Seq(len(events)); err != nil || bytes > (most+1)*size {
				t.Fatalf("%d bytes at once, %v", bytes, err)
			}
		}
	})
}
