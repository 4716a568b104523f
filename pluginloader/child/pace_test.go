package child

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	t.Run("reliability/P14 taking more than the burst has to wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &Pace{PerSecond: 1000, Burst: 500}
			began := time.Now()
			for _, c := range []struct{ take, ms int }{{500, 0}, {100, 100}, {4, 0}, {6, 10}, {2000, 2000}} {
				wait := p.Take(c.take)
				if want := time.Duration(c.ms) * time.Millisecond; (wait - want).Abs() > time.Microsecond {
					t.Errorf("after %d it waits %v, want %v", c.take, wait, want)
				}
				time.Sleep(wait)
			}
			if took := time.Since(began); (took - 2110*time.Millisecond).Abs() > time.Microsecond {
				t.Errorf("2,610 take %v", took)
			}
			time.Sleep(time.Second)
			if wait := p.Take(400); wait != 0 {
				t.Errorf("after a while it waits %v", wait)
			}
		})
	})
}
