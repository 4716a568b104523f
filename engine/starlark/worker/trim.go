package worker

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// trimDelay is how long the process is idle before it returns memory, and trimSize how much makes that worthwhile.
const (
	trimDelay = 300 * time.Millisecond
	trimSize  = 16 << 20
)

// trim returns unused memory to the system after the last cell.
var trim struct {
	sync.Mutex
	timer *time.Timer
}

// trimLater returns unused memory when no cell has ended for trimDelay. A running cell only waits for the collection.
func trimLater() {
	trim.Lock()
	defer trim.Unlock()
	if trim.timer == nil {
		trim.timer = time.AfterFunc(trimDelay, trimNow)
		return
	}
	trim.timer.Reset(trimDelay)
}

// trimNow collects garbage and returns unused memory, if there is much.
func trimNow() {
	s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	if s[0].Value.Uint64()+s[1].Value.Uint64()+s[2].Value.Uint64() > trimSize {
		debug.FreeOSMemory()
	}
}
