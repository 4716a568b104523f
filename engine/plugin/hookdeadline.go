package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// HookError is a contribution of a plugin that has failed.
type HookError struct {
	Plugin string
	Hook   Hook
	Err    error
}

func (e *HookError) Error() string { return fmt.Sprintf("plugin %s: %s: %v", e.Plugin, e.Hook, e.Err) }

func (e *HookError) Unwrap() error { return e.Err }

// LeftError is plugin code that was left alone, because it did not return although its context was done. It wraps the cause
// of that.
type LeftError struct {
	Plugin string
	Hook   Hook
	Cause  error
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("plugin %s: %s does not return: %v", e.Plugin, e.Hook, e.Cause)
}

func (e *LeftError) Unwrap() error { return e.Cause }

// PanicError is a plugin that has panicked.
type PanicError struct {
	Value string
	Stack []byte
}

func (e *PanicError) Error() string { return "panicked: " + e.Value }

// contain calls plugin code, and makes an error of a panic.
func contain[T any](call func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{fmt.Sprint(p), debug.Stack()}
		}
	}()
	return call()
}

const (
	// grace is how long a hook may still take once its context is done.
	grace = 50 * time.Millisecond
	// workGrace is likewise for what changes something: what it comes to then still counts.
	workGrace = 5 * time.Second
	// patience is how long a hook may take at all. It may ask a model, which may take as long.
	patience = 30 * time.Minute
	// shortPatience is how long plugins may take where nobody says how long.
	shortPatience = 10 * time.Second
)

// ErrSlowHook is why a hook has failed that is left alone, because it has taken too long.
var ErrSlowHook = errors.New("has not returned within half an hour")

// ErrLate is why plugin code has failed that is left alone where it was to return soon.
var ErrLate = errors.New("has not returned in time")

var errExited = errors.New("ended its goroutine")

// limits are how long plugin code may take: at all (0: as long as its context lasts), and once its context is done.
type limits struct{ whole, grace time.Duration }

func limitsOf(hook Hook) limits {
	switch hook {
	case HookCommand:
		return limits{patience, workGrace}
	case HookTask, HookExecutor:
		return limits{0, workGrace}
	}
	return limits{patience, grace}
}

type answer[T any] struct {
	out T
	err error
}

// begin calls plugin code in a goroutine of its own.
func begin[T any](call func() (T, error)) <-chan answer[T] {
	done := make(chan answer[T], 1)
	go func() {
		a := answer[T]{err: errExited}
		defer func() { done <- a }()
		a.out, a.err = contain(call)
	}()
	runtime.Gosched() // most hooks have answered after that, without a timer
	return done
}

// inTime waits for plugin code, and tells whether it has returned.
func inTime[T any](ctx context.Context, l limits, done <-chan answer[T]) (a answer[T], returned bool) {
	select {
	case a = <-done:
		return a, true
	default:
	}
	late := time.NewTimer(cmp.Or(l.whole, l.grace))
	defer late.Stop()
	expired := late.C
	if l.whole == 0 {
		expired = nil
	}
	select {
	case a = <-done:
		return a, true
	case <-expired:
		return a, false
	case <-ctx.Done():
		late.Reset(l.grace)
	}
	select {
	case a = <-done:
		return a, true
	case <-late.C:
		return a, false
	}
}

// invoke calls a hook unless ctx is done, whose cause is then the error: a hook that fails because its turn has ended has
// not failed by itself. One that does not return in time is left alone, and what it comes to goes nowhere.
func invoke[T any](ctx context.Context, r *roster, hook Hook, plugin string, call func() (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	done := begin(call)
	a, returned := inTime(ctx, limitsOf(hook), done)
	if !returned {
		r.abandoned.add(plugin, func() { <-done })
		return none, left(ctx, hook, plugin)
	}
	return outcome(ctx, hook, plugin, a.out, a.err)
}

// left is why plugin code has failed that did not return in time.
func left(ctx context.Context, hook Hook, plugin string) error {
	if ctx.Err() == nil {
		return &HookError{plugin, hook, ErrSlowHook}
	}
	return &LeftError{plugin, hook, context.Cause(ctx)}
}

func outcome[T any](ctx context.Context, hook Hook, plugin string, out T, err error) (T, error) {
	var none T
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return none, context.Cause(ctx)
	default:
		return none, &HookError{plugin, hook, err}
	}
}

// step says which plugin is at work where several are called one after the other, in one goroutine.
type step struct{ now atomic.Pointer[LeftError] }

func (s *step) is(hook Hook, plugin string) { s.now.Store(&LeftError{Plugin: plugin, Hook: hook}) }

// plugin is whose step it is.
func (s *step) plugin() string {
	if at := s.now.Load(); at != nil {
		return at.Plugin
	}
	return ""
}

// left is why steps have failed that did not return in time.
func (s *step) left(ctx context.Context) error {
	cause := ErrLate
	if ctx.Err() != nil {
		cause = context.Cause(ctx)
	}
	if at := s.now.Load(); at != nil {
		return &LeftError{at.Plugin, at.Hook, cause}
	}
	return cause
}
