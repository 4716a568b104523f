package cli

import (
	"runtime/debug"
	"sync"
	"time"
)

const (
	openingPercent = 400                  // of what is alive, that garbage may grow to in the meantime: 16 MiB at least, by runtime's documentation
	openingMoment  = 5 * time.Millisecond // that whatever can wait waits for a first client
)

// opening is the time from a daemon's start to its first answer. What that answer does not need waits until it is over, as it would
// take the processor from what the answer needs: collecting garbage, and reading what plugins and the engine begin with.
type opening struct {
	over chan struct{}
	end  func() // may be called more than once
}

func beginOpening() *opening {
	percent := debug.SetGCPercent(openingPercent)
	o := &opening{over: make(chan struct{})}
	o.end = sync.OnceFunc(func() {
		close(o.over)
		debug.SetGCPercent(percent)
	})
	return o
}

// served ends it soon, even if nobody asks anything.
func (o *opening) served() { time.AfterFunc(openingMoment, o.end) }
