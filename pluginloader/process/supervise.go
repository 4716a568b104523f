package process

import (
	"context"
	"errors"
	"fmt"
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

// supervisor sees to it that at most one process of a plugin runs, and that one that keeps crashing does not run too often.
type supervisor struct {
	plugin string
	launch func(context.Context) (*life, error) // starts a process, and shakes hands with it

	mu      sync.Mutex
	current *life
	attempt *attempt    // to start one
	crashes []time.Time // of the last crashSpan
	inARow  int
	notYet  time.Time // the next start is not before
	reason  error     // of the last crash
	banned  bool      // until resume
	closed  bool
	work    sync.WaitGroup
}

var errShutDown = errors.New("was shut down")

// attempt is a start that any number of callers wait for.
type attempt struct {
	done chan struct{}
	stop context.CancelFunc // ends it, and the process
	life *life
	err  error
}

// use gives the running process. If there is none it is started, once its time has come.
func (s *supervisor) use(ctx context.Context) (*life, error) {
	s.mu.Lock()
	if l := s.current; l != nil && l.alive() {
		s.mu.Unlock()
		return l, nil
	}
	a, err := s.attemptLocked(ctx)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a.life, a.err
	case <-ctx.Done():
		return nil, s.impatient(ctx)
	}
}

// impatient is what a caller is told who does not wait for the start any longer.
func (s *supervisor) impatient(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errLate) {
		return &Error{s.plugin, TimedOut, errors.New("is not started yet")}
	}
	return cause
}

// attemptLocked is the attempt that runs, or a new one. Who could not wait so long is told at once.
func (s *supervisor) attemptLocked(ctx context.Context) (*attempt, error) {
	switch {
	case s.closed:
		return nil, &Error{s.plugin, Stopped, errShutDown}
	case s.banned:
		return nil, &Error{s.plugin, Quarantined, fmt.Errorf("has crashed %d times within %v, at last: %w", crashLimit, crashSpan, s.reason)}
	}
	if until, limited := ctx.Deadline(); limited && s.notYet.After(until) {
		return nil, &Error{s.plugin, Crashed, fmt.Errorf("is started again in %v: %w", time.Until(s.notYet).Round(time.Millisecond), s.reason)}
	}
	if s.attempt == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		a := &attempt{done: make(chan struct{}), stop: stop}
		s.attempt = a
		s.work.Go(func() { s.try(ctx, a, s.current, time.Until(s.notYet)) })
	}
	return s.attempt, nil
}

// try waits until nothing is left of the process before, and for the delay, and starts the next one.
func (s *supervisor) try(ctx context.Context, a *attempt, before *life, delay time.Duration) {
	if before != nil {
		<-before.over
	}
	if pause(ctx, delay) {
		a.life, a.err = s.launch(ctx)
	} else {
		a.err = &Error{s.plugin, Stopped, errShutDown}
	}
	s.mu.Lock()
	s.attempt, s.current = nil, a.life
	switch {
	case s.closed:
	case a.err != nil:
		s.crashedLocked(cause(a.err))
	case !a.life.alive():
		s.lostLocked(a.life)
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
func (s *supervisor) crashedLocked(why error) {
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
	s.banned = len(recent) >= crashLimit
}

// ended counts the end of a process that nobody asked for. One that was never in use counts as a start that failed.
func (s *supervisor) ended(l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == l && !s.closed {
		s.lostLocked(l)
	}
}

func (s *supervisor) lostLocked(l *life) {
	if l.counted {
		return
	}
	l.counted = true
	if time.Since(l.began) > crashSpan {
		s.inARow = 0
	}
	s.crashedLocked(cause(l.reason()))
}

// resume forgets all crashes.
func (s *supervisor) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashes, s.inARow, s.notYet, s.reason, s.banned = nil, 0, time.Time{}, nil, false
}

// close lets nothing start any more, and gives the process that has to be stopped.
func (s *supervisor) close() *life {
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
