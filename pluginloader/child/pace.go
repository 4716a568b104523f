package child

import "time"

// Pace says how long to wait so that no more than so much is taken in a second. It is for one goroutine at a time.
type Pace struct {
	PerSecond int
	Burst     int // that may be taken at once, after a while without

	until time.Time // when all that was taken would have been taken without haste
}

// leastWait is less than it is worth to wait: it is put off.
const leastWait = 5 * time.Millisecond

// Take takes n, and gives the time to wait before more is taken.
func (p *Pace) Take(n int) time.Duration {
	now := time.Now()
	if p.until.Before(now) {
		p.until = now
	}
	p.until = p.until.Add(p.lasts(n))
	if wait := p.until.Sub(now) - p.lasts(p.Burst); wait >= leastWait {
		return wait
	}
	return 0
}

func (p *Pace) lasts(n int) time.Duration {
	return time.Duration(float64(n) / float64(p.PerSecond) * float64(time.Second))
}
