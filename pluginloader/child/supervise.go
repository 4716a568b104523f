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

const (
	firstDelay = 100 * time.Millisecond // before the start that follows a crash; it doubles with each
	longDelay  = 30 * time.Second
	crashLimit = 5 // crashes within crashSpan are too many
	crashSpan  = time.Minute
)

// Life is one run of a program, or one connection: from its start until nothing is left of it. The zero value is none.
type Life interface {
	comparable
	Alive() bool
	Over() <-chan struct{} // closed when nothing is left
	Began() time.Time
	Reason() error // why it has ended; nil: it has not
}

// Supervisor sees to it that at most one life of a plugin's program is there, and that one that keeps crashing is not begun
// too often. It may be used by several goroutines at once.
type Supervisor[L Life] struct {
	Plugin   string                           // for errors
	Launch   func(context.Context) (L, error) // begins a life: it ends at the latest with the context
	Tireless bool                             // however often it fails, it is never quarantined
	Report   func()                           // is called, on a goroutine of its own, when it begins to fail too often, and when it works again; nil: nobody is

	mu      sync.Mutex
	current L
	counted bool        // the end of current, as a crash
	attempt *attempt[L] // to begin one
	crashes []time.Time // of the last crashSpan
	inARow  int
	notYet  time.Time // the next start is not before
	reason  error     // of the last crash
	failing bool      // has crashed too often: until a life begins, or Resume
	resumed bool      // by Resume, after it had crashed too often: until a life begins, or it has crashed too often again
	closed  bool
	work    sync.WaitGroup
}

// ErrShutDown is the reason of what was asked to end.
var ErrShutDown = errors.New("was shut down")

// attempt is a start that any number of callers wait for.
type attempt[L Life] struct {
	done chan struct{}
	stop context.CancelFunc // ends it, and the life
	life L
	err  error
}

// Use gives the life that there is. If there is none it is begun, once its time has come.
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

// Impatient is what a caller is told who does not wait for the start any longer.
func (s *Supervisor[L]) Impatient(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrLate) {
		return &Error{s.Plugin, TimedOut, errors.New("has not started yet")}
	}
	return cause
}

// attemptLocked is the attempt that runs, or a new one. Who could not wait so long is told at once.
func (s *Supervisor[L]) attemptLocked(ctx context.Context) (*attempt[L], error) {
	var none L
	if s.current != none { // it has ended, whether we were told or not
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

// try waits until nothing is left of the process before, and for the delay, and starts the next one.
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

// crashedLocked counts a crash, and says when the next start may be.
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

// failingLocked notes whether it fails too often, and reports a change.
func (s *Supervisor[L]) failingLocked(now bool) {
	if (s.failing != now || s.resumed) && !s.closed && s.Report != nil {
		s.work.Go(s.Report)
	}
	s.failing, s.resumed = now, false
}

// bannedLocked reports whether nothing is begun until Resume.
func (s *Supervisor[L]) bannedLocked() bool { return s.failing && !s.Tireless }

// Ended counts the end of a life that nobody asked for: its reason is another than Stopped. One that was never in use counts as a start that failed.
func (s *Supervisor[L]) Ended(l L) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == l && !s.closed {
		s.lostLocked(l)
	}
}

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

// Resume forgets all crashes.
func (s *Supervisor[L]) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = s.resumed || s.failing
	s.crashes, s.inARow, s.notYet, s.reason, s.failing = nil, 0, time.Time{}, nil, false
}

// Standing is how things are with what is supervised.
type Standing struct {
	Starting    bool // and the time has come for it
	Quarantined bool
	Failing     bool  // it has failed too often; it is tried on, unless it is quarantined
	Resumed     bool  // after it had failed too often, and it has not begun since
	Reason      error // of the last failure; nil: there was none
}

// Look gives the life that there is, if it is alive, and how things are.
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

// Close lets nothing begin any more, and gives the life that has to be ended, if there is one.
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

// ExitText is how a program has ended, for people.
func ExitText(exit proc.Exit) string {
	if exit.Signal != "" {
		return exit.Signal
	}
	return fmt.Sprintf("exit status %d", exit.Code)
}

// DoneWithin waits for done, and tells whether it was closed in time.
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
