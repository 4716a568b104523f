package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
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

// LeftError is a hook that was left alone, because it did not return although its context was done. It wraps the cause of
// that.
type LeftError struct {
	Plugin string
	Hook   Hook
	Cause  error
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("plugin %s: %s does not return although its context is done: %v", e.Plugin, e.Hook, e.Cause)
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
	// patience is how long a hook may take at all. It may ask a model, which may take as long.
	patience = 30 * time.Minute
)

// ErrSlowHook is why a hook has failed that is left alone, because it has taken too long.
var ErrSlowHook = errors.New("has not returned within half an hour")

// awaited are those that are waited for whatever their context is: what they come to then still counts.
var awaited = map[Hook]bool{HookCommand: true, HookTask: true, HookExecutor: true}

var errExited = errors.New("ended its goroutine")

// inTime calls plugin code, and tells whether it has returned; it is left alone if it does not although ctx is done, or for too
// long.
func inTime[T any](ctx context.Context, call func() (T, error)) (out T, returned bool, err error) {
	type answer struct {
		out T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		a := answer{err: errExited}
		defer func() { done <- a }()
		a.out, a.err = contain(call)
	}()
	runtime.Gosched() // most hooks have answered after that, without a timer
	select {
	case a := <-done:
		return a.out, true, a.err
	default:
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case a := <-done:
		return a.out, true, a.err
	case <-late.C:
		return out, false, nil
	case <-ctx.Done():
		late.Reset(grace)
	}
	select {
	case a := <-done:
		return a.out, true, a.err
	case <-late.C:
		return out, false, nil
	}
}

// invoke calls a hook unless ctx is done, whose cause is then the error: a hook that fails because its turn has ended has
// not failed by itself.
func invoke[T any](ctx context.Context, hook Hook, plugin string, call func() (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	if awaited[hook] || ctx.Done() == nil {
		out, err := contain(call)
		return outcome(ctx, hook, plugin, out, err)
	}
	out, returned, err := inTime(ctx, call)
	if !returned {
		if ctx.Err() == nil {
			return none, &HookError{plugin, hook, ErrSlowHook}
		}
		return none, &LeftError{plugin, hook, context.Cause(ctx)}
	}
	return outcome(ctx, hook, plugin, out, err)
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

// mark tells the probe that a hook begins, and gives the function that tells that it has ended.
func (s *Session) mark(hook Hook, plugin string) (end func()) {
	if s.probe == nil || hook == HookCheckpoint {
		return func() {}
	}
	name := "plugin_hook." + string(hook) + "." + plugin
	s.probe(name + " begin")
	return func() { s.probe(name + " end") }
}

// SetProbe has the begin and the end of the hooks before and after turns, of context transforms and of lifecycle events
// told, as "plugin_hook.KIND.PLUGIN begin". It is set before the session is used, and called from several goroutines.
func (s *Session) SetProbe(probe func(mark string)) { s.probe = probe }
