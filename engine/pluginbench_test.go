package engine_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// written returns the bytes that the process has written so far; 0 where the system does not report it.
func written(b *testing.B) int64 {
	b.Helper()
	io, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(io), "wchar: ")
	n, _, _ := strings.Cut(rest, "\n")
	bytes, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}

// BenchmarkPluginState measures 1 MiB of plugin state: in a turn that does not change it, against the same turn of a
// session without, and when it is changed.
func BenchmarkPluginState(b *testing.B) {
	bulk := func(i int) string { return strings.Repeat(strconv.Itoa(10+i%90), 1<<19) }
	b.Run("unchanged", func(b *testing.B) {
		d := start(b, setup{model: instant("ok"), plugins: []plugin.Factory{&keeper{}}})
		full, empty := d.session(b), d.session(b)
		d.holds(b, full, "a", bulk(0))
		var with, without struct {
			took  time.Duration
			bytes int64
		}
		for _, id := range []protocol.SessionID{full, empty} {
			d.turn(b, id, "warm up")
		}
		for b.Loop() {
			for _, id := range []protocol.SessionID{full, empty} {
				at, before, sum := time.Now(), written(b), &without
				if id == full {
					sum = &with
				}
				d.turn(b, id, "go")
				sum.took, sum.bytes = sum.took+time.Since(at), sum.bytes+written(b)-before
			}
		}
		b.ReportMetric(float64(with.took)/float64(without.took), "x-time-none")
		b.ReportMetric(float64(with.bytes)/float64(max(1, without.bytes)), "x-bytes-none")
	})
	b.Run("changed", func(b *testing.B) {
		d := start(b, setup{model: instant("ok"), plugins: []plugin.Factory{&keeper{}}})
		id := d.session(b)
		before := written(b)
		for i := 0; b.Loop(); i++ {
			d.holds(b, id, "a", bulk(i))
		}
		b.ReportMetric(float64(written(b)-before)/float64(b.N)/(1<<20), "MB-written/op")
	})
}

// BenchmarkForkPlugins forks a session of 10,000 nodes whose plugin has state, and reports how many times as long that takes
// as with 10 nodes.
func BenchmarkForkPlugins(b *testing.B) {
	d := start(b, setup{model: instant("ok"), plugins: []plugin.Factory{&keeper{}}})
	long, short := d.filled(b, 10_000), d.filled(b, 10)
	for _, id := range []protocol.SessionID{long, short} {
		d.holds(b, id, "a", strings.Repeat("x", 64<<10))
	}
	took := map[protocol.SessionID]time.Duration{}
	for b.Loop() {
		for _, id := range []protocol.SessionID{long, short} {
			at := time.Now()
			must[*protocol.SessionNewResult](b)(d.History.Fork(b.Context(), &protocol.SessionForkParams{SessionID: id}))
			took[id] += time.Since(at)
		}
	}
	b.ReportMetric(took[long].Seconds()*1e3/float64(b.N), "fork-ms")
	b.ReportMetric(float64(took[long])/float64(took[short]), "x-10-nodes")
}
