package engine_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// TestSnapshotPaging reads items older than the snapshot of an attachment, like a client that scrolls up.
func TestSnapshotPaging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		var want []string
		for i := range 250 {
			said := "note " + strconv.Itoa(i)
			must[*protocol.GraphAppendResult](t)(d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: []protocol.NodeBody{
				{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: said}}}},
			}}))
			want = append(want, "userMessage: "+said)
		}
		first := d.observe(t, id).first
		older := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id, Cursor: first.NextCursor}))
		if got := append(lines(older.Data), lines(first.Items)...); !slices.Equal(got, want) || older.NextCursor != "" {
			t.Errorf("reliability/I9 a snapshot and what is older have %d items and then %q, want %d: %q", len(got), older.NextCursor, len(want), got)
		}
	})
}

// TestAttachOrder runs a turn between an attachment and the first read from it.
func TestAttachOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "one two"})})
		id := d.session(t)
		d.turn(t, id, "before")
		o := d.observe(t, id, 0)
		turn := d.begin(t, id, "go").TurnID
		d.wait(t, turn)
		o.over(turn)
		over := map[protocol.ItemID]bool{}
		for _, e := range o.all {
			switch e.Type {
			case protocol.EventItemCompleted:
				over[e.ItemID] = true
			case protocol.EventItemStarted:
				if over[e.Item.ID] {
					t.Errorf("reliability/I9 the item %s is completed, and then started: %v", e.Item.ID, types(o.all))
				}
			}
		}
		if starts := o.of(protocol.EventItemStarted); len(starts) == 0 {
			t.Errorf("nothing was started: %v", types(o.all))
		}
	})
}

// TestSnapshotIncludesInput attaches during the first model call: the input of the turn is no item yet and is no
// longer queued.
func TestSnapshotIncludesInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, setup{model: modelFunc(func(ctx context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			if yield(provider.Chunk{Text: "half"}, nil) {
				<-ctx.Done()
				yield(provider.Chunk{}, ctx.Err())
			}
		})})
		id := d.session(t)
		turn := d.begin(t, id, "go")
		d.begin(t, id, "and then")
		synctest.Wait()
		first := d.observe(t, id).first
		if first.TurnID != turn.TurnID || len(first.Entered) != 1 || first.Entered[0].ID != turn.InputID || first.Entered[0].Input[0].Text != "go" {
			t.Errorf("reliability/I9 the turn %s has taken in %+v", first.TurnID, first.Entered)
		}
		if len(first.Queue) != 1 || len(first.Items) != 0 || len(first.OpenItems) != 1 {
			t.Errorf("%d inputs wait, there are %d items, and %d are open", len(first.Queue), len(first.Items), len(first.OpenItems))
		}
		d.interrupt(t, turn.TurnID)
		d.wait(t, turn.TurnID)
		synctest.Wait()
		if first = d.observe(t, id).first; len(first.Entered) != 1 || first.Entered[0].Input[0].Text != "and then" || len(first.Queue) != 0 {
			t.Errorf("reliability/I9 the turn after it has taken in %+v", first.Entered)
		}
	})
}
