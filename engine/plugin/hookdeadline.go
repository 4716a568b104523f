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

// HookError is the failure of one contribution of a plugin. It wraps the plugin's own error.
type HookError struct {
	Plugin string
	Hook   Hook
	Err    error
}

func (e *HookError) Error() string { return fmt.Sprintf("plugin %s: %s: %v", e.Plugin, e.Hook, e.Err) }

func (e *HookError) Unwrap() error { return e.Err }

// AbandonedError means that plugin code did not return although its context was done, and that lashd stopped waiting for it.
// The code still runs; what it did or will do is unknown. It wraps the cause of the context.
type AbandonedError struct {
	Plugin string
	Hook   Hook
	Cause  error
}

func (e *AbandonedError) Error() string {
	return fmt.Sprintf("plugin %s: %s did not return: %v", e.Plugin, e.Hook, e.Cause)
}

func (e *AbandonedError) Unwrap() error { return e.Cause }

// PanicError is a panic of plugin code, with the stack of its goroutine.
type PanicError struct {
	Value string
	Stack []byte
}

func (e *PanicError) Error() string { return "panicked: " + e.Value }

// contain runs plugin code and converts a panic to a PanicError.
func contain[T any](call func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{fmt.Sprint(p), debug.Stack()}
		}
	}()
	return call()
}

const (
	// grace is how long a hook may still run after its context is done.
	grace = 50 * time.Millisecond
	// workGrace is grace for commands, tasks and code cells. They change something, so a late result still counts.
	workGrace = 5 * time.Second
	// hookTimeout is the total time limit of a hook. A hook may call a model, which can take that long.
	hookTimeout = 30 * time.Minute
	// shortTimeout limits plugin code where the caller has no deadline: drivers, fingerprints, Stored, Close.
	shortTimeout = 10 * time.Second
)

// ErrSlowHook is the error of a hook that lashd stopped waiting for after hookTimeout.
var ErrSlowHook = errors.New("did not return within 30 minutes")

// ErrLate is the cause of a AbandonedError after shortTimeout.
var ErrLate = errors.New("did not return in time")

// errExited is the error of plugin code that called runtime.Goexit.
var errExited = errors.New("called runtime.Goexit instead of returning")

// limits are the time limits of plugin code: whole is the total (0: unlimited), grace is what remains after ctx is
// done.
type limits struct{ whole, grace time.Duration }

// limitsOf returns the limits of a hook. Tasks and code cells run as long as their context lasts.
func limitsOf(hook Hook) limits {
	switch hook {
	case HookCommand:
		return limits{hookTimeout, workGrace}
	case HookTask, HookExecutor:
		return limits{0, workGrace}
	}
	return limits{hookTimeout, grace}
}

// answer is the result of plugin code on its way from its goroutine.
type answer[T any] struct {
	out T
	err error
}

// begin runs plugin code in a goroutine of its own. The channel has room for the answer, so an abandoned call leaks
// nothing once it returns.
func begin[T any](call func() (T, error)) <-chan answer[T] {
	done := make(chan answer[T], 1)
	go func() {
		a := answer[T]{err: errExited}
		defer func() { done <- a }()
		a.out, a.err = contain(call)
	}()
	runtime.Gosched() // most hooks have answered after that, which saves a timer
	return done
}

// inTime waits for the answer of begin, and reports whether it came within the limits.
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

// invoke calls a hook with the limits of its kind. If ctx is done before or after the call, the error is the cause of
// ctx: a hook does not fail by itself because its turn ended. A hook that does not return in time is abandoned, and its
// result is dropped.
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

// left returns the error of plugin code that did not return in time: ErrSlowHook while ctx is alive, else a AbandonedError.
func left(ctx context.Context, hook Hook, plugin string) error {
	if ctx.Err() == nil {
		return &HookError{plugin, hook, ErrSlowHook}
	}
	return &AbandonedError{plugin, hook, context.Cause(ctx)}
}

// outcome attributes an error of plugin code: to ctx if that is done, else to the plugin as a HookError.
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

// step records which plugin runs, where one goroutine calls several plugins in turn. The goroutine that waits reads it
// to name the plugin that does not return.
type step struct {
	now atomic.Pointer[AbandonedError]
}

func (s *step) set(hook Hook, plugin string) {
	s.now.Store(&AbandonedError{Plugin: plugin, Hook: hook})
}

// plugin returns the id of the plugin that runs, or "" before the first one.
func (s *step) plugin() string {
	if at := s.now.Load(); at != nil {
		return at.Plugin
	}
	return ""
}

// left returns the error of steps that did not finish in time. It names the plugin that was running.
func (s *step) left(ctx context.Context) error {
	cause := ErrLate
	if ctx.Err() != nil {
		cause = context.Cause(ctx)
	}
	if at := s.now.Load(); at != nil {
		return &AbandonedError{at.Plugin, at.Hook, cause}
	}
	return cause
}
