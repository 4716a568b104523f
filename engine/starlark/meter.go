package starlark

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"
)

// Limits bound one cell. Zero values mean the defaults.
type Limits struct {
	Steps  uint64        `json:"steps,omitempty"`  // of the interpreter; default 50 million, about two seconds
	Time   time.Duration `json:"-"`                // of activity, without calls of the host; default 30 s
	Memory int           `json:"memory,omitempty"` // heap of the process in bytes; default 256 MiB
	Output int           `json:"output,omitempty"` // printed bytes; default 256 KiB
	Value  int           `json:"value,omitempty"`  // bytes of one global, of the arguments of one call, or of a final value; default 4 MiB
}

// OrDefault returns the limits with defaults in place of zeros.
func (l Limits) OrDefault() Limits {
	return Limits{
		Steps: cmp.Or(l.Steps, 50_000_000), Time: cmp.Or(l.Time, 30*time.Second), Memory: cmp.Or(l.Memory, 256<<20),
		Output: cmp.Or(l.Output, 256<<10), Value: cmp.Or(l.Value, 4<<20),
	}
}

const (
	// stepsBetweenChecks is how often the interpreter looks at the depth of its stack. A call takes at least five
	// steps, so the stack grows by at most 200 frames in between.
	stepsBetweenChecks = 1000
	// maxFrames is the depth of calls, as in Python.
	maxFrames = 1000
	// watchInterval is how often the watchdog looks at the time and the memory.
	watchInterval = 5 * time.Millisecond
	// grace is how long a cancelled cell may need to stop. It bounds single functions of the library.
	grace = 2 * time.Second
	// allocation is the size of values from which a function checks the memory before it makes them.
	allocation = 1 << 20
)

// errStopped is the error of operations of a cell that has exceeded a limit; the meter knows which one.
var errStopped = errors.New("stopped")

// meter measures a running cell and stops it at a limit.
type meter struct {
	limits Limits
	stuck  func(string)
	thread *starlark.Thread
	reason atomic.Pointer[string] // the exceeded limit

	unchecked int // bytes of values that were made since the memory was last checked

	mu      sync.Mutex
	active  time.Duration // before the newest resume
	resumed time.Time     // zero: the clock stands still
}

func newMeter(c Config, r *run) *meter { return &meter{limits: c.Limits, stuck: c.Stuck} }

// exceeded says which limit the cell has exceeded, or "".
// Only the first limit counts. It may be called from any goroutine.
func (m *meter) exceeded() string {
	if reason := m.reason.Load(); reason != nil {
		return *reason
	}
	return ""
}

// stop stops the cell because of a limit. It returns errStopped.
// The thread stops at its next step; a function of the library that runs then is stopped only by the error that it returns.
func (m *meter) stop(format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	m.reason.CompareAndSwap(nil, &reason)
	m.thread.Cancel(reason)
	return errStopped
}

// start starts the clock and the watchdog of a thread. The returned function stops both and waits for the watchdog.
func (m *meter) start(ctx context.Context, thread *starlark.Thread) func() {
	m.thread, m.resumed = thread, time.Now()
	thread.SetMaxExecutionSteps(stepsBetweenChecks)
	thread.OnMaxSteps = m.check
	over := make(chan struct{})
	var watchdog sync.WaitGroup
	watchdog.Go(func() { m.watch(ctx, over) })
	return func() {
		close(over)
		watchdog.Wait()
	}
}

// check runs on the thread every stepsBetweenChecks steps.
// Both limits are checked here rather than at each step, because a callback for each step would slow the code down.
func (m *meter) check(thread *starlark.Thread) {
	thread.SetMaxExecutionSteps(thread.Steps + stepsBetweenChecks)
	switch {
	case thread.Steps > m.limits.Steps:
		_ = m.stop("the cell ran for more than %d steps; do less work in one cell, or move it to a tool", m.limits.Steps)
	case thread.CallStackDepth() > maxFrames:
		_ = m.stop("calls are nested more than %d deep; the recursion does not end, or needs a loop", maxFrames)
	}
}

// watch stops the thread when it has used its time or memory, or when ctx ends.
// It runs on a goroutine of its own until over is closed. If the thread does not stop within the grace period, for example inside of a
// long builtin, it calls stuck once, with which the worker ends its process.
func (m *meter) watch(ctx context.Context, over <-chan struct{}) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var since time.Time
	done := ctx.Done()
	for {
		select {
		case <-over:
			return
		case <-done:
			m.thread.Cancel("cancelled")
			done = nil
		case <-tick.C:
		}
		switch {
		case m.exceeded() != "" || done == nil:
			if since.IsZero() {
				since = time.Now()
			}
			if m.running() && time.Since(since) > grace && m.stuck != nil {
				m.stuck(cmp.Or(m.exceeded(), "the cell was cancelled"))
				m.stuck = nil
			}
		case m.elapsed() > m.limits.Time:
			_ = m.stop("the cell was active for more than %v; do less work in one cell, or move it to a tool", m.limits.Time)
		case heap() > m.limits.Memory:
			if runtime.GC(); heap() > m.limits.Memory {
				_ = m.tooLarge()
			}
		}
	}
}

// tooLarge stops the cell because of its memory.
func (m *meter) tooLarge() error {
	return m.stop("the cell used more than %s of memory; work on smaller pieces, or keep data in files", bytesText(m.limits.Memory))
}

// heap returns the size of the heap in use, with garbage that has not been collected yet.
// It does not stop the program, unlike runtime.ReadMemStats, so it can be called often.
func heap() int {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// need is called before n bytes are allocated at once. It stops the cell if there is not enough memory.
// Small sizes are added up, and the heap is read only when they reach allocation. Garbage is collected before the cell is stopped.
func (m *meter) need(n int) error {
	if n > m.limits.Memory {
		return m.tooLarge()
	}
	if m.unchecked += n; m.unchecked < allocation {
		return nil
	}
	m.unchecked = 0
	if heap()+n > m.limits.Memory {
		if runtime.GC(); heap()+n > m.limits.Memory {
			return m.tooLarge()
		}
	}
	return nil
}

// room is need for memory that other calls of need do not count.
// It reads the heap each time and collects no garbage, so it is for large sizes that are rare.
func (m *meter) room(n int) error {
	if heap()+n > m.limits.Memory {
		return m.tooLarge()
	}
	return nil
}

// charge counts the steps of a function of the library that does much work.
// The steps count like those of the interpreter, and the same message ends the cell.
func (m *meter) charge(steps int) error {
	m.thread.Steps += uint64(steps)
	if m.thread.Steps > m.limits.Steps {
		return m.stop("the cell ran for more than %d steps; do less work in one cell, or move it to a tool", m.limits.Steps)
	}
	return nil
}

// pause stops the clock during a call of the host.
func (m *meter) pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active += time.Since(m.resumed)
	m.resumed = time.Time{}
}

func (m *meter) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resumed = time.Now()
}

// running reports whether the cell itself is running, not a call of the host.
func (m *meter) running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.resumed.IsZero()
}

// elapsed returns the active time.
// The time of calls of the host is not part of it, so a cell can wait for a person without a limit.
func (m *meter) elapsed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resumed.IsZero() {
		return m.active
	}
	return m.active + time.Since(m.resumed)
}

// outside calls f, a call of the host, with the clock stopped.
func outside[T any](r *run, f func() (T, error)) (T, error) {
	r.meter.pause()
	defer r.meter.resume()
	return f()
}

// bytesText returns a size for people.
func bytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
