package bench

import (
	"os"
	"testing"
	"time"

	"lashd/test/fakemodel"
)

// otherVariable names the environment variable with another build of lashd to compare with.
const otherVariable = "LASHD_OTHER"

// BenchmarkVersus runs starts, turns and tool turns of this build and of the one that LASHD_OTHER names, alternately, so that noise of the
// machine affects both. Each figure is a median in milliseconds; "x" is this build's divided by the other's.
func BenchmarkVersus(b *testing.B) {
	const block = 30
	tool := fakemodel.ToolMarker("shell", `{"command":"true"}`)
	turns := func(prompt string) func(*versus) []time.Duration {
		return func(v *versus) (took []time.Duration) {
			sid := warm(b, v.peer)
			for range block {
				took = append(took, run(b, v.peer, sid, prompt).Total)
			}
			return took
		}
	}
	ready := func(v *versus) (took []time.Duration) {
		for range block / 3 {
			p := start(b, v.restart)
			took = append(took, p.Ready)
			if err := p.Close(); err != nil {
				b.Fatal(err)
			}
		}
		return took
	}
	ours, theirs := newVersus(b, ""), newVersus(b, os.Getenv(otherVariable))
	took := map[string][2][]time.Duration{}
	for b.Loop() {
		for what, measure := range map[string]func(*versus) []time.Duration{"ready": ready, "turn": turns(fakemodel.Marker(1, 6, 0)), "toolturn": turns(tool)} {
			t := took[what]
			t[0], t[1] = append(t[0], measure(ours)...), append(t[1], measure(theirs)...)
			took[what] = t
		}
	}
	for what, t := range took {
		own, old := median(t[0]), median(t[1])
		b.ReportMetric(own.Seconds()*1e3, what+"-ms")
		b.ReportMetric(old.Seconds()*1e3, what+"-other-ms")
		b.ReportMetric(own.Seconds()/old.Seconds(), "x-"+what)
	}
}

// versus is one of the two builds: a running daemon, and the configuration of one that is restarted
// repeatedly.
type versus struct {
	peer    *Peer
	restart Config
}

// newVersus starts a build. An empty binary means the build of this tree.
func newVersus(b *testing.B, binary string) *versus {
	b.Helper()
	prepare := func() Config {
		_, cfg := setup(b, targets[1])
		if binary != "" {
			cfg.Args[0] = binary
		}
		return cfg
	}
	v := &versus{restart: prepare()}
	start(b, v.restart).Close() // creates the database
	v.peer = start(b, prepare())
	b.Cleanup(func() { v.peer.Close() })
	return v
}
