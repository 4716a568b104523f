package engine_test

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// instant is a model that answers at once, whatever the conversation.
func instant(chunks ...string) provider.Provider {
	return modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
		for _, text := range chunks {
			if !yield(provider.Chunk{Text: text}, nil) {
				return
			}
		}
		yield(provider.Chunk{Usage: &protocol.Usage{Input: 10, Output: 10}, Stop: protocol.StopEnd}, nil)
	})
}

// tenTools is about what a session has.
func tenTools() []tool.Provider {
	var all []tool.Provider
	for i := range 10 {
		f := says("tool"+strconv.Itoa(i), "fine")
		f.schema = `{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("what it is for ", 20) + `"}}}`
		all = append(all, f)
	}
	return all
}

// BenchmarkTurn is a turn without tools from turn/start to its report, and how many times as long it takes as the two
// commits that it cannot do without.
func BenchmarkTurn(b *testing.B) {
	d := start(b, setup{model: instant("It is fine."), tools: tenTools()})
	var id protocol.SessionID
	n, began, raw := 0, time.Duration(0), time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		if n++; n%100 == 1 {
			b.StopTimer()
			id = d.session(b)
			d.turn(b, id, "warm up")
			b.StartTimer()
		}
		at := time.Now()
		d.turn(b, id, "how is it?")
		began += time.Since(at)
		b.StopTimer()
		raw += twoCommits(b, d, n)
		b.StartTimer()
	}
	b.ReportMetric(float64(began)/float64(raw), "x-2-commits")
}

// twoCommits is how long two small commits take, one after the other.
func twoCommits(b *testing.B, d *daemon, n int) time.Duration {
	b.Helper()
	id := protocol.SessionID("ses_raw" + strconv.Itoa((n-1)/1000))
	if n%1000 == 1 {
		c := &persistence.Commit{
			Session: id, AtMs: 1, Create: &persistence.NewSession{Cwd: "/"},
			Nodes: []protocol.Node{{ID: protocol.NodeID("nod_" + id), FrameOpen: &protocol.FrameOpen{Key: "initial"}}},
		}
		if _, err := d.store.Commit(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	at := time.Now()
	for range 2 {
		c := &persistence.Commit{Session: id, AtMs: 1, Events: []persistence.Event{{Type: protocol.EventPluginCustom, Body: []byte(`{"atMs":1}`)}}}
		if _, err := d.store.Commit(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(at)
}

// BenchmarkTurn2000 is the 2,000th turn of a session, and how many times as long it takes as the first ones.
func BenchmarkTurn2000(b *testing.B) {
	d := start(b, setup{model: instant("It is fine."), tools: tenTools()})
	id := d.session(b)
	const some = 50
	d.turn(b, id, "warm up")
	spent := func(n int) time.Duration {
		at := time.Now()
		for range n {
			d.turn(b, id, "how is it?")
		}
		return time.Since(at) / time.Duration(n)
	}
	first := spent(some)
	spent(2000 - some)
	last, rounds := time.Duration(0), 0
	b.ResetTimer()
	for b.Loop() {
		last += spent(1)
		rounds++
	}
	b.ReportMetric(float64(last/time.Duration(rounds))/float64(first), "x-first-turns")
}

// BenchmarkDeltas is a reply of 100,000 deltas on its way to one observer.
func BenchmarkDeltas(b *testing.B) {
	const n = 100_000
	chunks := make([]string, n)
	for i := range chunks {
		chunks[i] = "word "
	}
	d := start(b, setup{model: instant(chunks...)})
	id := d.session(b)
	o := d.observe(b, id)
	got, bytes := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		turn := d.begin(b, id, "go").TurnID
		for over := false; !over; {
			events, err := o.sub.Next(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			for _, e := range events {
				bytes += len(e)
				got++
				over = over || strings.Contains(string(e[:min(len(e), 200)]), `"type":"turn/completed"`)
			}
		}
		d.wait(b, turn)
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "deltas/s")
	b.ReportMetric(float64(got)/float64(b.N), "events/op")
}

// BenchmarkAttach10k attaches to a session of 10,000 nodes that is not in memory, and reports the ratio of time and
// memory to that of a session of 400 nodes.
func BenchmarkAttach10k(b *testing.B) {
	d := start(b, setup{model: instant("ok")})
	long, short := d.filled(b, 10_000), d.filled(b, 400)
	var large, small cost
	for b.Loop() {
		large.add(d.attachCold(b, long))
		small.add(d.attachCold(b, short))
	}
	b.ReportMetric(large.time.Seconds()*1e3/float64(b.N), "attach-ms")
	b.ReportMetric(float64(large.time)/float64(small.time), "x-time-400")
	b.ReportMetric(float64(large.bytes)/float64(small.bytes), "x-bytes-400")
}

// filled is a session with n nodes.
func (d *daemon) filled(b *testing.B, n int) protocol.SessionID {
	id := d.session(b)
	note := protocol.NodeBody{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: strings.Repeat("a note ", 30)}}}}
	nodes := slices.Repeat([]protocol.NodeBody{note}, min(n, 100))
	for range n / len(nodes) {
		must[*protocol.GraphAppendResult](b)(d.History.Append(b.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: nodes}))
	}
	return id
}

// cost is what something took.
type cost struct {
	time  time.Duration
	bytes uint64 // allocated
}

func (c *cost) add(more cost) { c.time, c.bytes = c.time+more.time, c.bytes+more.bytes }

// attachCold loads a session and attaches to it.
func (d *daemon) attachCold(b *testing.B, id protocol.SessionID) cost {
	must[*protocol.SeqResult](b)(d.Sessions.Close(b.Context(), &protocol.SessionMutationParams{SessionID: id}))
	allocated, at := allocations(), time.Now()
	res, sub, err := d.Sessions.Attach(b.Context(), &protocol.SessionAttachParams{SessionID: id})
	if err != nil {
		b.Fatal(err)
	}
	took := cost{time.Since(at), allocations() - allocated}
	if len(res.Items) != 200 {
		b.Fatalf("%d items, want the newest 200", len(res.Items))
	}
	sub.Close()
	return took
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// BenchmarkOpenSession is the memory of a session that is open and has had a turn.
func BenchmarkOpenSession(b *testing.B) {
	const n = 50
	d := start(b, setup{model: instant("It is fine."), tools: tenTools()})
	d.turn(b, d.session(b), "warm up")
	total := 0.0
	for b.Loop() {
		before := heap()
		for range n {
			d.turn(b, d.session(b), "go")
		}
		total += float64(heap()-before) / n
	}
	b.ReportMetric(total/float64(b.N)/(1<<20), "MB/session")
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
