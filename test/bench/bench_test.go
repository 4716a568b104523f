package bench

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/test/fakemodel"
)

// floors are the figures of the floor, by benchmark and unit. The floor runs first, so that lashd's
// figures can be reported as a ratio.
var floors = map[string]float64{}

// metric reports a figure. For targets other than the floor it also reports the ratio to the floor's
// figure.
func metric(b *testing.B, v float64, unit string) {
	b.ReportMetric(v, unit)
	name := b.Name()[:strings.LastIndexByte(b.Name(), '/')+1] + unit
	if strings.HasSuffix(b.Name(), "/floor") {
		floors[name] = v
	} else if f := floors[name]; f > 0 {
		b.ReportMetric(v/f, "x-"+unit)
	}
}

func BenchmarkReady(b *testing.B) {
	each(b, func(b *testing.B, _ *fakemodel.Server, cfg Config) {
		var ready []time.Duration
		start(b, cfg).Close() // creates the database
		for b.Loop() {
			p := start(b, cfg)
			ready = append(ready, p.Ready)
			if err := p.Close(); err != nil {
				b.Fatal(err)
			}
		}
		metric(b, median(ready).Seconds()*1e3, "ready-ms")
	})
}

func BenchmarkTurn(b *testing.B) {
	each(b, func(b *testing.B, model *fakemodel.Server, cfg Config) {
		p := start(b, cfg)
		defer p.Close()
		var total, own []time.Duration
		sid := warm(b, p)
		n := 0
		for b.Loop() {
			if n%200 == 0 { // starts a new session, to keep histories of equal length whatever b.N is
				sid = warm(b, p)
			}
			n++
			t, without := overhead(b, p, model, sid)
			total, own = append(total, t), append(own, without...)
		}
		metric(b, median(total).Seconds()*1e3, "turn-ms")
		metric(b, median(own).Seconds()*1e3, "own-ms") // without the model's time
		report(b, p)
	})
}

// BenchmarkTurnPaired alternates turns of lashd and the floor, so that noise of the machine affects
// both. The overhead of a turn is its time without the model's time; lashd's prompt is longer.
func BenchmarkTurnPaired(b *testing.B) {
	const block = 50
	type side struct {
		peer       *Peer
		model      *fakemodel.Server
		total, own []time.Duration
	}
	var sides []*side
	for _, tg := range targets {
		model, cfg := setup(b, tg)
		p := start(b, cfg)
		defer p.Close()
		sides = append(sides, &side{peer: p, model: model})
	}
	for b.Loop() {
		for _, s := range sides {
			sid := warm(b, s.peer)
			for range block {
				t, own := overhead(b, s.peer, s.model, sid)
				s.total = append(s.total, t)
				s.own = append(s.own, own...)
			}
		}
	}
	for what, of := range map[string]func(*side) []time.Duration{
		"turn-ms": func(s *side) []time.Duration { return s.total }, "overhead-ms": func(s *side) []time.Duration { return s.own },
	} {
		least, own := median(of(sides[0])), median(of(sides[1]))
		b.ReportMetric(least.Seconds()*1e3, "floor-"+what)
		b.ReportMetric(own.Seconds()*1e3, "lashd-"+what)
		b.ReportMetric(own.Seconds()/least.Seconds(), "x-"+what)
	}
}

// overhead runs a turn and returns its duration with and without the model's time.
// own is empty if the model server has not recorded the end of its reply yet.
func overhead(b *testing.B, p *Peer, model *fakemodel.Server, sid string) (total time.Duration, own []time.Duration) {
	model.Reset()
	t := run(b, p, sid, fakemodel.Marker(1, 6, 0))
	if r := model.Requests()[0]; !r.End.IsZero() {
		own = append(own, t.Total-r.End.Sub(r.Start))
	}
	return t.Total, own
}

func BenchmarkStream(b *testing.B) {
	const deltas = 20000
	for _, flush := range []string{"1", "64"} {
		b.Run("flush="+flush, func(b *testing.B) {
			each(b, func(b *testing.B, _ *fakemodel.Server, cfg Config) {
				p := start(b, cfg)
				defer p.Close()
				var total []time.Duration
				for b.Loop() {
					sid := warm(b, p) // a session of its own, so that history does not count
					t := run(b, p, sid, "[[fake deltas=20000 flush="+flush+"]]")
					total = append(total, t.Total)
				}
				metric(b, deltas/median(total).Seconds(), "deltas/s")
				report(b, p)
			})
		})
	}
}

// BenchmarkPaced measures how long the daemon delays a single delta.
func BenchmarkPaced(b *testing.B) {
	each(b, func(b *testing.B, model *fakemodel.Server, cfg Config) {
		p := start(b, cfg)
		defer p.Close()
		var delay []time.Duration
		for b.Loop() {
			sid := warm(b, p)
			model.Reset()
			t := run(b, p, sid, fakemodel.Marker(100, 6, 5*time.Millisecond))
			sent := model.Requests()[0].Sent
			if len(sent) != t.Deltas {
				b.Fatalf("%d deltas arrived of %d", t.Deltas, len(sent))
			}
			for i, at := range t.At {
				delay = append(delay, at.Sub(sent[i]))
			}
		}
		slices.Sort(delay)
		metric(b, median(delay).Seconds()*1e6, "delay-us")
		metric(b, delay[len(delay)*99/100].Seconds()*1e6, "p99-us")
		report(b, p)
	})
}

// warm creates a session and runs a turn in it.
func warm(b *testing.B, p *Peer) string {
	b.Helper()
	sid, err := p.Create()
	if err != nil {
		b.Fatal(err)
	}
	run(b, p, sid, "[[fake]]")
	return sid
}

func run(tb testing.TB, p *Peer, sid, prompt string) Turn {
	tb.Helper()
	t, err := p.Turn(sid, prompt)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// report adds the resources that the process used.
func report(b *testing.B, p *Peer) {
	metric(b, float64(resident(b, p))/(1<<20), "rss-MB")
}

func median[T cmp.Ordered](v []T) (m T) {
	if len(v) == 0 {
		return m
	}
	return slices.Sorted(slices.Values(v))[len(v)/2]
}
