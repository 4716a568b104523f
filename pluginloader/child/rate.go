package child

import "time"

// Rate counts what happens within a second. It is for one goroutine at a time.
type Rate struct {
	since time.Time
	n     int
}

// Spent tells whether nothing more is within the limit.
func (r *Rate) Spent(limit int) bool { return r.n >= limit && time.Since(r.since) <= time.Second }

// Allow tells whether one more is within the limit.
func (r *Rate) Allow(limit int) bool {
	if now := time.Now(); now.Sub(r.since) > time.Second {
		r.since, r.n = now, 0
	}
	r.n++
	return r.n <= limit
}
