package engine_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"lashd/rpc/protocol"
)

// TestSnapshotsGoOnInPages reads what is older than the snapshot of an attachment, as a client does that scrolls up.
func TestSnapshotsGoOnInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		var want []string
		for i := range 250 {
			said := "note " + strconv.Itoa(i)
			must[*protocol.GraphAppendResult](t)(d.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: []protocol.NodeBody{
				{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: said}}}},
			}}))
			want = append(want, "userMessage: "+said)
		}
		first := d.observe(t, id).first
		older := must[*protocol.SessionReadResult](t)(d.ReadSession(t.Context(), &protocol.SessionReadParams{SessionID: id, Cursor: first.NextCursor}))
		if got := append(lines(older.Data), lines(first.Items)...); !slices.Equal(got, want) || older.NextCursor != "" {
			t.Errorf("reliability/I9 a snapshot and what is older have %d items and then %q, want %d: %q", len(got), older.NextCursor, len(want), got)
		}
	})
}
