package child

import "time"

// Rate counts events in windows of one second. It is for one goroutine at a time.
type Rate struct {
	since time.Time // start of the window
	n     int       // events in the window
}

// Spent reports whether the current window already has limit events. It counts nothing.
func (r *Rate) Spent(limit int) bool { return r.n >= limit && time.Since(r.since) <= time.Second }

// Allow counts an event and reports whether it is within limit events per second.
func (r *Rate) Allow(limit int) bool {
	if now := time.Now(); now.Sub(r.since) > time.Second {
		r.since, r.n = now, 0
	}
	r.n++
	return r.n <= limit
}
