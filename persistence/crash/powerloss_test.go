package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// states is the number of simulated power losses.
func states() int {
	if long() {
		return 500
	}
	return 40
}

// lose cuts the power at random steps of a recorded workload and calls each with the state after each crash, until each returns true.
func lose(t *testing.T, durability string, n int, each func(name string, v verdict) (enough bool)) {
	dir, log := trace(t, durability, 3, 6)
	seed := seed(t)
	t.Logf("%d steps", len(log.steps))
	rng := rand.New(rand.NewPCG(seed, 1))
	points := make([]int, n)
	for i := range points {
		points[i] = rng.IntN(len(log.steps) + 1)
	}
	slices.Sort(points) // so that one pass over the steps serves all
	d, want, done := newDisk(), acked{}, 0
	for i, point := range points {
		for ; done < point; done++ {
			if s := log.steps[done]; s.call == "ack" {
				want.note(s.line)
			} else {
				d.do(s)
			}
		}
		into := filepath.Join(t.TempDir(), "store")
		if err := os.MkdirAll(into, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := d.crash(dir, into, rng); err != nil {
			t.Fatal(err)
		}
		if each(fmt.Sprintf("seed %d, state %d, after step %d", seed, i, point), inspect(into, want)) {
			return
		}
		os.RemoveAll(into) // or the disk would hold all states until the end
	}
}

func TestPowerLoss(t *testing.T) {
	needStrace(t)
	t.Run("reliability/R3 nothing acknowledged is lost", func(t *testing.T) {
		lose(t, "FULL", states(), func(name string, v verdict) bool {
			report(t, name, v)
			if v.noticed {
				t.Errorf("%s: the store believes to have lost commits", name)
			}
			return t.Failed()
		})
	})
	// The same replay must see the loss that a weaker setting allows, or it would see none at all.
	t.Run("reliability/F2 without FULL the replay finds losses", func(t *testing.T) {
		tried, lost := 0, 0
		lose(t, "NORMAL", states(), func(_ string, v verdict) bool {
			tried++
			if len(v.lost) > 0 {
				lost++
			}
			return lost > 0 && !long()
		})
		t.Logf("commits were lost in %d of %d states", lost, tried)
		if lost == 0 {
			t.Error("no state lost anything")
		}
	})
}
