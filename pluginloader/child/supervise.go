package child

import (
	"context"
	"errors"
	"fmt"
	"lashd/engine/proc"
	"math/rand/v2"
	"sync"
	"time"
)

// Delays between restarts, and the limit beyond which a plugin is quarantined.
const (
	firstDelay = 100 * time.Millisecond // delay after the first crash; it doubles with each further crash in a row
	longDelay  = 30 * time.Second       // the longest delay
	crashLimit = 5                      // crashes within crashSpan that lead to quarantine
	crashSpan  = time.Minute
)

// Life is one run of a program or one connection, from its start until nothing of it is left. The
// zero value stands for no life.
type Life interface {
	comparable
	Alive() bool           // Alive reports whether the life can take calls.
	Over() <-chan struct{} // closed when nothing of it is left, so that the next one may start
	Began() time.Time      // Began returns the time of the start.
	Reason() error         // why it ended; nil while it has not
}

// Supervisor keeps at most one life of a plugin's program running. It starts the program on demand,
// delays restarts after crashes and stops starting a program that keeps crashing. It never starts a
// life before the last one is over.
//
// Set the exported fields before first use. All methods are safe for concurrent use. They lock mu
// for short times only; Launch and Report run without the lock.
type Supervisor[L Life] struct {
	Plugin string // the plugin's name, for errors
	// Launch starts a life. The life must end when ctx ends, at the latest.
	Launch   func(context.Context) (L, error)
	Tireless bool // never quarantine, for programs whose failures are not their own, such as connections
	// Report is called on its own goroutine when the program starts to fail too often, and when it
	// works again. May be nil.
	Report func()

	mu      sync.Mutex
	current L              // the newest life, also after its end; zero: none yet
	counted bool           // the end of current is already in crashes
	attempt *attempt[L]    // the start in progress; nil: none
	crashes []time.Time    // times of the crashes within crashSpan
	inARow  int            // crashes since the last life that outlasted crashSpan
	notYet  time.Time      // earliest time of the next start
	reason  error          // error of the last crash
	failing bool           // crashed too often; until a life starts or Resume is called
	resumed bool           // Resume was called while failing; until a life starts or it fails too often again
	closed  bool           // Close was called
	work    sync.WaitGroup // starts in progress and calls of Report
}

// ErrShutDown is the reason of a life that lashd itself ended.
var ErrShutDown = errors.New("was shut down")

// attempt is a start in progress. Any number of callers wait for done; life and err are set before
// done is closed.
type attempt[L Life] struct {
	done chan struct{}
	stop context.CancelFunc // ends the attempt and, after a successful start, the life
	life L
	err  error
}

// Use returns the running life. If there is none, it starts one, after the delay that earlier
// crashes require, and waits for the start. Errors are *Error values: Quarantined, Stopped, Crashed
// if ctx ends before the next start is due, or the error of Launch.
func (s *Supervisor[L]) Use(ctx context.Context) (L, error) {
	var none L
	s.mu.Lock()
	if l := s.current; l != none && l.Alive() {
		s.mu.Unlock()
		return l, nil
	}
	a, err := s.attemptLocked(ctx)
	s.mu.Unlock()
	if err != nil {
		return none, err
	}
	select {
	case <-a.done:
		return a.life, a.err
	case <-ctx.Done():
		return none, s.Impatient(ctx)
	}
}

// Impatient returns the error for a caller whose ctx ended while it waited for a start. The start
// itself continues.
func (s *Supervisor[L]) Impatient(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrLate) {
		return &Error{s.Plugin, TimedOut, errors.New("has not started yet")}
	}
	return cause
}

// attemptLocked returns the start in progress, or begins one. It fails at once if the next start is
// due only after the deadline of ctx.
func (s *Supervisor[L]) attemptLocked(ctx context.Context) (*attempt[L], error) {
	var none L
	if s.current != none { // it is dead, though Ended may not have been called yet
		s.lostLocked(s.current)
	}
	switch {
	case s.closed:
		return nil, &Error{s.Plugin, Stopped, ErrShutDown}
	case s.bannedLocked():
		return nil, &Error{s.Plugin, Quarantined, fmt.Errorf("crashed %d times within %v; last error: %w", crashLimit, crashSpan, s.reason)}
	}
	if until, limited := ctx.Deadline(); limited && s.notYet.After(until) {
		return nil, &Error{s.Plugin, Crashed, fmt.Errorf("restarts in %v: %w", time.Until(s.notYet).Round(time.Millisecond), s.reason)}
	}
	if s.attempt == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		a := &attempt[L]{done: make(chan struct{}), stop: stop}
		s.attempt = a
		before, delay := s.current, time.Until(s.notYet)
		s.work.Go(func() { s.try(ctx, a, before, delay) })
	}
	return s.attempt, nil
}

// try waits for the end of the previous life and for the delay. Then it launches the next life,
// counts a failed start as a crash and wakes the callers. It runs on its own goroutine.
func (s *Supervisor[L]) try(ctx context.Context, a *attempt[L], before L, delay time.Duration) {
	var none L
	if before != none {
		<-before.Over()
	}
	if pause(ctx, delay) {
		a.life, a.err = s.Launch(ctx)
	} else {
		a.err = &Error{s.Plugin, Stopped, ErrShutDown}
	}
	s.mu.Lock()
	s.attempt, s.current, s.counted = nil, a.life, false
	switch {
	case s.closed:
	case CodeOf(a.err) == Modified: // nothing has run
		s.reason = Cause(a.err)
	case a.err != nil:
		s.crashedLocked(Cause(a.err))
	case !a.life.Alive():
		s.lostLocked(a.life)
	default:
		s.failingLocked(false)
	}
	s.mu.Unlock()
	if a.err != nil {
		a.stop()
	}
	close(a.done)
}

// pause waits for delay. It reports false if ctx ended.
func pause(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// crashedLocked records a crash and computes the earliest time of the next start. Half of the delay
// is random, so that plugins which crashed together do not restart together.
func (s *Supervisor[L]) crashedLocked(why error) {
	now := time.Now()
	recent := s.crashes[:0]
	for _, at := range append(s.crashes, now) {
		if now.Sub(at) < crashSpan {
			recent = append(recent, at)
		}
	}
	delay := min(firstDelay<<min(s.inARow, 16), longDelay)
	s.crashes, s.reason = recent, why
	s.inARow++
	s.notYet = now.Add(delay/2 + rand.N(delay/2+1))
	if len(recent) >= crashLimit {
		s.failingLocked(true)
	}
}

// failingLocked sets failing and calls Report if it changed.
func (s *Supervisor[L]) failingLocked(now bool) {
	if (s.failing != now || s.resumed) && !s.closed && s.Report != nil {
		s.work.Go(s.Report)
	}
	s.failing, s.resumed = now, false
}

// bannedLocked reports whether the plugin is quarantined.
func (s *Supervisor[L]) bannedLocked() bool { return s.failing && !s.Tireless }

// Ended records that a life has ended. The end counts as a crash unless its reason has the code
// Stopped. Calls for another life than the current one have no effect.
func (s *Supervisor[L]) Ended(l L) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == l && !s.closed {
		s.lostLocked(l)
	}
}

// lostLocked counts the end of a life as a crash, at most once. A life that lasted longer than
// crashSpan resets the delay.
func (s *Supervisor[L]) lostLocked(l L) {
	if s.counted || CodeOf(l.Reason()) == Stopped {
		return
	}
	s.counted = true
	if time.Since(l.Began()) > crashSpan {
		s.inARow = 0
	}
	s.crashedLocked(Cause(l.Reason()))
}

// Resume forgets all crashes and ends a quarantine. The next Use may start the program at once.
func (s *Supervisor[L]) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = s.resumed || s.failing
	s.crashes, s.inARow, s.notYet, s.reason, s.failing = nil, 0, time.Time{}, nil, false
}

// Standing describes the state of a supervised program at one moment.
type Standing struct {
	Starting    bool  // a start is in progress and its delay has passed
	Quarantined bool  // not started until Resume
	Failing     bool  // crashed too often; restarts continue unless Quarantined
	Resumed     bool  // Resume was called after it failed too often, and it has not started since
	Reason      error // the last failure; nil: none
}

// Look returns the running life, or the zero value, and the state. It never starts anything.
func (s *Supervisor[L]) Look() (L, Standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none L
	st := Standing{s.attempt != nil && !time.Now().Before(s.notYet), s.bannedLocked(), s.failing, s.resumed, s.reason}
	if s.current == none || !s.current.Alive() {
		return none, st
	}
	return s.current, st
}

// Close prevents further starts, waits for a start in progress and calls of Report, and returns the
// last life for the caller to end. Calls to Use fail with code Stopped from then on.
func (s *Supervisor[L]) Close() L {
	s.mu.Lock()
	s.closed = true
	if s.attempt != nil {
		s.attempt.stop()
	}
	s.mu.Unlock()
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// ExitText describes how a program ended: the signal's name, or its exit status.
func ExitText(exit proc.Exit) string {
	if exit.Signal != "" {
		return exit.Signal
	}
	return fmt.Sprintf("exit status %d", exit.Code)
}

// DoneWithin waits for done and reports whether it was closed within limit.
func DoneWithin(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
