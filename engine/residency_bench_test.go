package engine_test

import (
	"context"
	"testing"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// BenchmarkParkedSession measures the memory that a session still uses after it had a turn and left memory.
func BenchmarkParkedSession(b *testing.B) {
	const n = 500
	d := start(b, setup{model: instant("It is fine."), tools: tenTools()})
	park := func(n int) {
		for range n {
			id := d.session(b)
			d.turn(b, id, "go")
			must[*protocol.SeqResult](b)(d.Sessions.Close(b.Context(), &protocol.SessionMutationParams{SessionID: id}))
		}
	}
	park(n) // warm up the store's pages and pools
	total, ops := 0.0, 0
	for b.Loop() {
		before := heap()
		park(n)
		total += float64(heap() - before)
		ops++
	}
	if loaded, _ := d.Stats(); loaded != 0 {
		b.Fatalf("%d sessions are in memory", loaded)
	}
	b.ReportMetric(total/float64(ops*n), "B/session")
}

// BenchmarkResume10k resumes an unloaded session of 10,000 nodes. It measures the time until the session is loaded, the time until
// the model is called, and for comparison the time of a turn that follows at once.
func BenchmarkResume10k(b *testing.B) {
	var asked time.Time
	model := instant("ok")
	d := start(b, setup{model: modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		asked = time.Now()
		for chunk, err := range model.Stream(ctx, req) {
			yield(chunk, err)
		}
	})})
	id := d.filled(b, 10_000)
	var loaded, cold, warm time.Duration
	for b.Loop() {
		must[*protocol.SeqResult](b)(d.Sessions.Close(b.Context(), &protocol.SessionMutationParams{SessionID: id}))
		at := time.Now()
		must[*protocol.SessionWaitResult](b)(d.Sessions.Wait(b.Context(), &protocol.SessionWaitParams{SessionID: id}))
		loaded += time.Since(at)
		must[*protocol.SeqResult](b)(d.Sessions.Close(b.Context(), &protocol.SessionMutationParams{SessionID: id}))
		at = time.Now()
		d.turn(b, id, "how is it?")
		cold += asked.Sub(at)
		at = time.Now()
		d.turn(b, id, "and now?")
		warm += asked.Sub(at)
	}
	for unit, took := range map[string]time.Duration{"loaded-ms": loaded, "asked-ms": cold, "warm-ms": warm} {
		b.ReportMetric(took.Seconds()*1e3/float64(b.N), unit)
	}
}
