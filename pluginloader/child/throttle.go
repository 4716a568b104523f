package child

import "time"

// Pace limits a rate. Take returns how long to wait so that at most PerSecond units pass per
// second, after a first burst. It is for one goroutine at a time.
type Pace struct {
	PerSecond int
	Burst     int // units that may pass without a wait after a pause

	until time.Time // time at which all units taken so far have passed at PerSecond
}

// leastWait is the shortest wait worth a sleep. Shorter waits add up until they reach it.
const leastWait = 5 * time.Millisecond

// Take counts n units and returns how long to wait before the next ones.
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

// lasts returns how long n units take at PerSecond.
func (p *Pace) lasts(n int) time.Duration {
	return time.Duration(float64(n) / float64(p.PerSecond) * float64(time.Second))
}
