package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"lashd/test/fakemodel"
)

// asked are methods that must not become slower when other sessions wait for a person.
var asked = []string{"ping", "session/list", "session/new"}

// BenchmarkAsking measures the time of calls while 50 sessions have an open approval, and while 50
// sessions are idle. Calls to the two daemons alternate. One operation is 100 rounds.
func BenchmarkAsking(b *testing.B) {
	quiet, waits := waiting(b, 0), waiting(b, 50)
	took := map[string][2][]time.Duration{}
	for b.Loop() {
		for range 100 {
			for _, method := range asked {
				both := took[method]
				for i, p := range []*Peer{quiet, waits} {
					both[i] = append(both[i], p.timed(b, method))
				}
				took[method] = both
			}
		}
	}
	for _, method := range asked {
		without, with := took[method][0], took[method][1]
		b.ReportMetric(percentile(with, 99).Seconds()*1e3, method+"-p99-ms")
		b.ReportMetric(percentile(with, 99).Seconds()/percentile(without, 99).Seconds(), "x-"+method+"-p99")
		b.ReportMetric(median(with).Seconds()/median(without).Seconds(), "x-"+method+"-p50")
	}
}

// waiting starts a daemon with 50 sessions. Some of them wait for the approval of a call; the others
// have finished a turn.
func waiting(b *testing.B, asking int) *Peer {
	b.Helper()
	const sessions = 50
	_, cfg := setup(b, targets[1])
	p := start(b, cfg)
	b.Cleanup(func() { p.Kill() })
	for i := range sessions {
		if i >= asking {
			warm(b, p)
			continue
		}
		var made sessionParams
		p.must(b, "session/new", fmt.Sprintf(`{"cwd":%q,"approval":{"mode":"ask"}}`, p.dir), &made)
		prompt := fakemodel.ToolMarker("shell", `{"command":"true"}`)
		p.must(b, "turn/start", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":%q}]}`, made.SessionID, prompt), nil)
	}
	for open := -1; open != asking; {
		var status struct {
			Open    int `json:"openDecisions"`
			Running int `json:"runningTurns"`
		}
		p.must(b, "server/status", `{}`, &status)
		open = status.Open
	}
	return p
}

// timed returns the duration of a call.
func (p *Peer) timed(b *testing.B, method string) time.Duration {
	b.Helper()
	params := `{}`
	if method == "session/new" {
		params = fmt.Sprintf(`{"cwd":%q}`, p.dir)
	}
	at := time.Now()
	p.must(b, method, params, nil)
	return time.Since(at)
}

// must makes a call and decodes its result.
func (p *Peer) must(b *testing.B, method, params string, result any) {
	b.Helper()
	answer, err := p.call(method, json.RawMessage(params))
	if err == nil && result != nil {
		err = json.Unmarshal(answer, result)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func percentile(v []time.Duration, n int) time.Duration {
	return slices.Sorted(slices.Values(v))[len(v)*n/100]
}

// BenchmarkStored measures the time from the start of a daemon to its first answer, and to a list of
// its sessions, with 10,000 stored sessions and with none. The two alternate.
func BenchmarkStored(b *testing.B) {
	var sides [2]struct {
		cfg           Config
		ready, listed []time.Duration
		rss           int64
	}
	for i, sessions := range []int{0, 10_000} {
		_, cfg := setup(b, targets[1])
		p := start(b, cfg)
		for range sessions {
			if _, err := p.Create(); err != nil {
				b.Fatal(err)
			}
		}
		end(b, p)
		sides[i].cfg = cfg
	}
	for b.Loop() {
		for i := range sides {
			s := &sides[i]
			began := time.Now()
			p := start(b, s.cfg)
			s.ready = append(s.ready, p.Ready)
			p.must(b, "session/list", `{}`, nil)
			s.listed = append(s.listed, time.Since(began))
			s.rss = resident(b, p)
			end(b, p)
		}
	}
	none, many := sides[0], sides[1]
	b.ReportMetric(median(many.ready).Seconds()*1e3, "ready-ms")
	b.ReportMetric(median(many.ready).Seconds()/median(none.ready).Seconds(), "x-ready")
	b.ReportMetric(median(many.listed).Seconds()*1e3, "listed-ms")
	b.ReportMetric(median(many.listed).Seconds()/median(none.listed).Seconds(), "x-listed")
	b.ReportMetric(float64(many.rss)/float64(none.rss), "x-rss")
}
