package engine_test

import (
	"testing"
	"testing/synctest"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// TestContextUse opens sessions that no turn is using.
func TestContextUse(t *testing.T) {
	context := func(t *testing.T, d *daemon, id protocol.SessionID) *protocol.Usage {
		t.Helper()
		r, sub, err := d.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		sub.Close()
		return r.Context
	}
	synctest.Test(t, func(t *testing.T) {
		d := start(t, setup{
			model:   replies(calls("none"), scripted.Reply{Text: "b", Usage: &protocol.Usage{Input: 150, CacheRead: 100, Output: 10}}),
			plugins: plugins(compactor("sum", 1, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) { return summary("so far"), nil })),
		})
		id := d.session(t)
		if got := context(t, d, id); got != nil {
			t.Errorf("issue/18 before the first call the context has %+v, want nothing", got)
		}
		d.turn(t, id, "one")
		d = d.restart(t, nil)
		if got := context(t, d, id); got == nil || got.Total() != 260 {
			t.Errorf("issue/18 a session that is opened again says %+v, want the 260 tokens of its newest call", got)
		}
		beside := d.session(t)
		must[*protocol.SeqResult](t)(d.Sessions.SetTitle(t.Context(), &protocol.SessionSetTitleParams{SessionID: beside, Title: "beside"}))
		if got := context(t, d, beside); got != nil {
			t.Errorf("issue/22 a session without a call that follows one with a call has %+v, want nothing", got)
		}
		fork := must[*protocol.SessionNewResult](t)(d.History.Fork(t.Context(), &protocol.SessionForkParams{SessionID: id})).SessionID
		if got := context(t, d, fork); got == nil || got.Total() != 260 {
			t.Errorf("part13/vscode a fork has %+v, want the 260 tokens of the newest call of its source", got)
		}
		must[*protocol.SessionCompactResult](t)(d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}))
		if got := context(t, d, id); got != nil {
			t.Errorf("issue/18 after a compaction the context has %+v, want nothing", got)
		}
	})
}

// TestContextUseAfterRewind undoes the second of two turns and brings it back. A fork of the first turn is like the session without the second.
func TestContextUseAfterRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "a", Usage: &protocol.Usage{Input: 100}})}) // 2 tokens for the second turn
		id := d.session(t)
		used := func(id protocol.SessionID) int64 {
			r, sub, err := d.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id})
			if err != nil {
				t.Fatal(err)
			}
			sub.Close()
			if r.Context == nil {
				return 0
			}
			return r.Context.Total()
		}
		leaf := func() protocol.NodeID {
			return must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session.Head.Leaf
		}
		d.turn(t, id, "one")
		first := leaf()
		d.turn(t, id, "two")
		fork := must[*protocol.SessionNewResult](t)(d.History.Fork(t.Context(), &protocol.SessionForkParams{SessionID: id, AtNode: first})).SessionID
		if got := used(fork); got != 100 {
			t.Errorf("part13/vscode a fork of the first turn has %d tokens, want 100", got)
		}
		before := &protocol.SnapshotMutationParams{SessionID: id, Name: "before the undo"}
		must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), before))
		must[*protocol.SessionRewindResult](t)(d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToNode: first}))
		if got := used(id); got != 100 {
			t.Errorf("part13/vscode without the second turn the context has %d tokens, want 100", got)
		}
		must[*protocol.SnapshotRestoreResult](t)(d.Snapshots.Restore(t.Context(), before))
		if got := used(id); got != 2 {
			t.Errorf("part13/vscode with the second turn again the context has %d tokens, want 2", got)
		}
	})
}
