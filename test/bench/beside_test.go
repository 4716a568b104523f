package bench

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lashd/test/fakemodel"
)

// beset is a daemon with a misbehaving plugin in a session of its own.
type beset struct {
	*Peer
	while     string // the plugin misbehaves while this file exists
	bad, good string // sessions
}

func besetBy(tb testing.TB, manner string) *beset {
	tb.Helper()
	_, cfg := setup(tb, targets[1])
	d := &beset{while: filepath.Join(cfg.Dir, "while")}
	plugins(tb, &cfg, manner, d.while)
	d.Peer = start(tb, cfg)
	tb.Cleanup(func() { d.Close() })
	for _, id := range []*string{&d.bad, &d.good} {
		var err error
		if *id, err = d.Create(); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := d.call("session/detach", sessionParams{d.bad}); err != nil {
		tb.Fatal(err)
	}
	return d
}

// misbehave starts the misbehavior. The returned function ends it.
func (d *beset) misbehave(tb testing.TB) (end func()) {
	tb.Helper()
	if err := os.WriteFile(d.while, nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	if _, err := d.call("plugin/reload", struct { // leaves quarantine
		Cwd string `json:"cwd"`
	}{d.dir}); err != nil {
		tb.Fatal(err)
	}
	if _, _, err := d.send(d.proto.Turn, turnParams{d.bad, []textInput{{"text", fakemodel.ToolMarker("bad_now", `{}`)}}}); err != nil {
		tb.Fatal(err)
	}
	return func() { os.Remove(d.while) }
}

// turns runs turns in the other session.
func (d *beset) turns(tb testing.TB, n int) (took []time.Duration) {
	tb.Helper()
	for range n {
		t, err := d.Turn(d.good, fakemodel.Marker(1, 6, 0))
		if err != nil {
			tb.Fatal(err)
		}
		took = append(took, t.Total)
	}
	return took
}

// beside alternates turns of both daemons and returns their durations.
func beside(tb testing.TB, calm, beset *beset, block int) (least, most []time.Duration) {
	tb.Helper()
	least = calm.turns(tb, block)
	defer beset.misbehave(tb)()
	return least, beset.turns(tb, block)
}

// more is the difference of the peak memory of two daemons, in bytes.
func more(tb testing.TB, beset, calm *beset) int64 { return peak(tb, beset.Peer) - peak(tb, calm.Peer) }

// maxMore is the additional memory that a daemon may use because of a misbehaving plugin, in bytes.
const maxMore = 64 << 20

// TestBeside checks the figures of BenchmarkBeside against limits. Limits of time are wide, and one
// turn in a hundred may take any time, because other work may run on the machine.
func TestBeside(t *testing.T) {
	for _, manner := range slices.Sorted(maps.Keys(manners)) {
		t.Run("reliability/P14 turns beside a plugin that "+manner, func(t *testing.T) {
			calm, beset := besetBy(t, manner), besetBy(t, manner)
			var least, most []time.Duration
			for began := time.Now(); time.Since(began) < time.Second; {
				l, m := beside(t, calm, beset, 20)
				least, most = append(least, l...), append(most, m...)
			}
			if got, limit := median(most), 3*median(least)+100*time.Millisecond; got > limit {
				t.Errorf("the median turn takes %v, without the plugin %v", got, median(least))
			}
			if got := slices.Max(most); got > 5*time.Second {
				t.Errorf("the slowest of %d turns takes %v", len(most), got)
			}
			if got := more(t, beset, calm); got > maxMore {
				t.Errorf("the daemon uses %d MiB more", got>>20)
			}
		})
	}
}

// BenchmarkBeside alternates turns of two daemons, one of which has a misbehaving plugin in another
// session. It reports the ratio of the turn times and the difference in memory.
func BenchmarkBeside(b *testing.B) {
	const block = 100
	for _, manner := range slices.Sorted(maps.Keys(manners)) {
		b.Run(manner, func(b *testing.B) {
			calm, beset := besetBy(b, manner), besetBy(b, manner)
			calm.turns(b, block)
			beset.turns(b, block)
			var least, most []time.Duration
			for b.Loop() {
				l, m := beside(b, calm, beset, block)
				least, most = append(least, l...), append(most, m...)
			}
			compare(b, least, most)
			b.ReportMetric(float64(more(b, beset, calm))/(1<<20), "more-MB")
		})
	}
}

func compare(b *testing.B, least, most []time.Duration) {
	slices.Sort(least)
	slices.Sort(most)
	p99 := func(v []time.Duration) float64 { return v[len(v)*99/100].Seconds() * 1e3 }
	b.ReportMetric(p99(least), "calm-p99-ms")
	b.ReportMetric(p99(most), "p99-ms")
	b.ReportMetric(p99(most)/p99(least), "x-p99")
	b.ReportMetric(median(most).Seconds()/median(least).Seconds(), "x-median")
}
