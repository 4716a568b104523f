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
		must[*protocol.SessionCompactResult](t)(d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}))
		if got := context(t, d, id); got != nil {
			t.Errorf("issue/18 after a compaction the context has %+v, want nothing", got)
		}
	})
}
