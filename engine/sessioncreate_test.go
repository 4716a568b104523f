package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func (d *daemon) graph(t *testing.T, id protocol.SessionID) *protocol.GraphReadResult {
	t.Helper()
	return must[*protocol.GraphReadResult](t)(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id}))
}

func (d *daemon) fork(t *testing.T, id protocol.SessionID, at protocol.NodeID) *protocol.SessionNewResult {
	t.Helper()
	return must[*protocol.SessionNewResult](t)(d.History.Fork(t.Context(), &protocol.SessionForkParams{SessionID: id, AtNode: at}))
}

// said returns the texts of the messages on a path.
func said(nodes []protocol.Node) (texts []string) {
	for _, n := range nodes {
		if n.Message != nil {
			texts = append(texts, n.Message.Parts[0].Text)
		}
	}
	return texts
}

func TestForks(t *testing.T) {
	t.Run("runtime/S03 a fork starts at the leaf or at a pinned node and nowhere else", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"})})
		id := d.session(t)
		d.turn(t, id, "one")
		first := d.graph(t, id).Head.Leaf
		d.turn(t, id, "two")
		second := d.graph(t, id).Head.Leaf
		if got := said(d.graph(t, d.fork(t, id, "").SessionID).Data); !slices.Equal(got, []string{"one", "ok", "two", "ok"}) {
			t.Errorf("a fork at the leaf begins with %q", got)
		}
		must[*protocol.SessionRewindResult](t)(d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToNode: first}))
		pins := d.graph(t, id).Pins
		if len(pins) != 1 || pins[0].NodeID != second {
			t.Fatalf("after a rewind the pins are %+v, want the leaf that was left: %s", pins, second)
		}
		if got := said(d.graph(t, d.fork(t, id, second).SessionID).Data); !slices.Equal(got, []string{"one", "ok", "two", "ok"}) {
			t.Errorf("a fork at the pinned node begins with %q", got)
		}
		must[*protocol.SeqResult](t)(d.History.Unpin(t.Context(), &protocol.GraphPinParams{SessionID: id, NodeID: second}))
		if pins := d.graph(t, id).Pins; len(pins) != 0 {
			t.Errorf("pins %+v", pins)
		}
		_, err := d.History.Fork(t.Context(), &protocol.SessionForkParams{SessionID: id, AtNode: second})
		if !errors.Is(err, persistence.ErrNotRetained) {
			t.Errorf("a fork at an unpinned node: %v", err)
		}
	})
}

func TestReadView(t *testing.T) {
	t.Run("runtime/S09 a page has nothing of a running turn, and later reads return the same items", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: scripted.New(&scripted.Script{
			Turns:     []scripted.Turn{{Replies: []scripted.Reply{{Text: "ok"}}}},
			Otherwise: &scripted.Turn{Replies: []scripted.Reply{calls("work"), {Text: "done"}}},
		}), tools: []tool.Provider{g}})
		id := d.session(t)
		d.turn(t, id, "before")
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		during := d.graph(t, id)
		if got := said(during.Data); !slices.Equal(got, []string{"before", "ok"}) {
			t.Errorf("beside a running turn %q are read", got)
		}
		kept, err := json.Marshal(during)
		if err != nil {
			t.Fatal(err)
		}
		close(g.open)
		d.wait(t, turn)
		if again, err := json.Marshal(during); err != nil || string(again) != string(kept) {
			t.Errorf("the page changed from %s to %s (%v)", kept, again, err)
		}
		if after := d.graph(t, id); len(after.Data) <= len(during.Data) || after.Data[1].ID != during.Data[1].ID {
			t.Errorf("after the turn: %+v", after.Data)
		}
	})
}

func TestSessionList(t *testing.T) {
	t.Run("runtime/S17 sessions are listed newest first, by page, archive and workspace, with their relations", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		var made []protocol.SessionID // oldest first
		for range 3 {
			id := d.session(t)
			d.turn(t, id, "hello")
			made = append(made, id)
		}
		for before := time.Now().UnixMilli(); time.Now().UnixMilli() == before; { // times have a resolution of 1 ms
			runtime.Gosched()
		}
		d.turn(t, made[0], "and again") // makes it the newest
		first := must[*protocol.SessionListResult](t)(d.Sessions.List(t.Context(), &protocol.SessionListParams{Limit: 2}))
		rest := must[*protocol.SessionListResult](t)(d.Sessions.List(t.Context(), &protocol.SessionListParams{Limit: 2, Cursor: first.NextCursor}))
		if got := ids(slices.Concat(first.Data, rest.Data)); !slices.Equal(got, []protocol.SessionID{made[0], made[2], made[1]}) {
			t.Errorf("listed %v of %v", got, made)
		}
		if s := first.Data[0]; s.TurnIndex != 2 || s.State != protocol.SessionIdle || s.Usage.Output == 0 || s.Relation.Kind != protocol.RelationRoot {
			t.Errorf("%+v", s)
		}
		must[*protocol.SeqResult](t)(d.Sessions.SetTitle(t.Context(), &protocol.SessionSetTitleParams{SessionID: made[1], Title: "kept"}))
		must[*protocol.SeqResult](t)(d.Sessions.Archive(t.Context(), &protocol.SessionArchiveParams{SessionID: made[1]}))
		away := must[*protocol.SessionListResult](t)(d.Sessions.List(t.Context(), &protocol.SessionListParams{Archived: true}))
		if len(away.Data) != 1 || away.Data[0].ID != made[1] || away.Data[0].Title != "kept" || !away.Data[0].Archived {
			t.Errorf("archived: %+v", away.Data)
		}
		cwd := first.Data[0].Cwd
		here := must[*protocol.SessionListResult](t)(d.Sessions.List(t.Context(), &protocol.SessionListParams{Cwd: cwd}))
		if got := ids(here.Data); !slices.Equal(got, made[:1]) {
			t.Errorf("in %s there are %v", filepath.Base(cwd), got)
		}
		child := d.fork(t, made[2], "").Session
		want := &protocol.ForkSource{SessionID: made[2], Node: d.graph(t, made[2]).Head.Leaf}
		if child.Relation.Kind != protocol.RelationFork || *child.Relation.Source != *want {
			t.Errorf("a fork comes from %+v, want %+v", child.Relation, want)
		}
	})
}

func ids(sessions []protocol.Session) (list []protocol.SessionID) {
	for _, s := range sessions {
		list = append(list, s.ID)
	}
	return list
}

func TestDeleteAfterClientLeft(t *testing.T) {
	t.Run("runtime/S16 a client may disconnect while its session is deleted", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		for i := range 40 { // enough to show up under the race detector
			id := d.session(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
			if _, err := d.Sessions.Delete(ctx, &protocol.SessionMutationParams{SessionID: id}); err != nil && ctx.Err() == nil {
				t.Errorf("deleted with %v", err)
			}
			cancel()
		}
	})
}
