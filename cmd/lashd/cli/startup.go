package cli

import (
	"runtime/debug"
	"sync"
	"time"
)

const (
	openingPercent = 400                  // GOGC during startup; the minimum heap is then 16 MiB
	openingMoment  = 5 * time.Millisecond // time that the first client has to send its first request
)

// opening is the period from the start of a daemon to its first answer. Work that
// the answer does not need is postponed to its end, so that it does not compete
// for the processor: garbage collection, and the first reads of plugins and the
// engine. A command that starts a daemon waits for this answer, so the period
// decides how fast lashd feels.
type opening struct {
	over chan struct{} // closed at the end of the period
	end  func()        // ends the period; may be called more than once
}

// beginOpening starts the period. The caller must make sure that end is called,
// also if the start fails.
func beginOpening() *opening {
	percent := debug.SetGCPercent(openingPercent)
	o := &opening{over: make(chan struct{})}
	o.end = sync.OnceFunc(func() {
		close(o.over)
		debug.SetGCPercent(percent)
	})
	return o
}

// served ends the period soon, even if no request arrives. The daemon calls it
// when it is ready to serve.
func (o *opening) served() { time.AfterFunc(openingMoment, o.end) }
