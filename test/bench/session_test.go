package bench

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"lashd/test/fakemodel"
)

// quiet is the time after its start at which a daemon is idle.
const quiet = 1500 * time.Millisecond

// BenchmarkIdle measures the resident memory of an idle daemon with stored sessions.
func BenchmarkIdle(b *testing.B) {
	for name, stored := range map[string]int{"new": 0, "stored=1000": 1000} {
		b.Run(name, func(b *testing.B) {
			each(b, func(b *testing.B, _ *fakemodel.Server, cfg Config) {
				fill(b, cfg, stored, 1)
				for b.Loop() {
					p := start(b, cfg)
					time.Sleep(quiet)
					report(b, p)
					end(b, p)
				}
			})
		})
	}
}

// BenchmarkOpen measures the memory of each of 50 open sessions after one turn.
func BenchmarkOpen(b *testing.B) {
	const sessions = 50
	each(b, func(b *testing.B, _ *fakemodel.Server, cfg Config) {
		var each []float64
		for b.Loop() {
			p := start(b, cfg)
			warm(b, p)
			before := resident(b, p)
			for range sessions {
				warm(b, p)
			}
			each = append(each, float64(resident(b, p)-before)/(1<<20)/sessions)
			report(b, p)
			end(b, p)
		}
		metric(b, median(each), "MB/session")
	})
}

// BenchmarkResume opens a session of 200 turns in a new process, runs a turn and ends the process with
// SIGTERM.
func BenchmarkResume(b *testing.B) {
	each(b, func(b *testing.B, _ *fakemodel.Server, cfg Config) {
		sid := fill(b, cfg, 1, 200)
		var attach, whole []time.Duration
		for b.Loop() {
			begin := time.Now()
			p := start(b, cfg)
			asked := time.Now()
			items, err := p.Attach(sid)
			if err != nil {
				b.Fatal(err)
			}
			attach = append(attach, time.Since(asked))
			if n := strings.Count(string(items), "[[fake"); n < 100 { // lashd returns the newest 200 items; older ones are read by page
				b.Fatalf("%d inputs in what was attached, want 100 at least: %.300s", n, items)
			}
			run(b, p, sid, fakemodel.Marker(1, 6, 0))
			whole = append(whole, time.Since(begin))
			if err := p.Terminate(); err != nil && cfg.Protocol == Lashd { // the floor does not handle SIGTERM
				b.Fatal(err)
			}
		}
		metric(b, median(attach).Seconds()*1e3, "attach-ms")
		metric(b, median(whole).Seconds()*1e3, "start-to-turn-ms")
	})
}

// fill runs turns in new sessions of a daemon, stops it, and returns the id of the last session.
func fill(b *testing.B, cfg Config, sessions, turns int) (sid string) {
	b.Helper()
	p := start(b, cfg)
	for range sessions {
		sid = warm(b, p)
		for range turns - 1 {
			run(b, p, sid, fakemodel.Marker(1, 6, 0))
		}
	}
	end(b, p)
	return sid
}

func end(b *testing.B, p *Peer) {
	b.Helper()
	if err := p.Close(); err != nil {
		b.Fatal(err)
	}
}

// peak is the peak resident memory in bytes; 0 if the system does not report it.
func peak(b testing.TB, p *Peer) int64 {
	b.Helper()
	rss, err := p.PeakRSS()
	if err != nil && runtime.GOOS == "linux" {
		b.Fatal(err)
	}
	return rss
}

// resident is the resident memory in bytes; 0 if the system does not report it.
func resident(b *testing.B, p *Peer) int64 {
	b.Helper()
	rss, err := p.RSS()
	if err != nil && runtime.GOOS == "linux" {
		b.Fatal(err)
	}
	return rss
}
