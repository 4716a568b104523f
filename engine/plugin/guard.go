package plugin

import (
	"context"
	"fmt"
	"runtime/debug"
)

// HookError is a contribution of a plugin that has failed.
type HookError struct {
	Plugin string
	Hook   Hook
	Err    error
}

func (e *HookError) Error() string { return fmt.Sprintf("plugin %s: %s: %v", e.Plugin, e.Hook, e.Err) }

func (e *HookError) Unwrap() error { return e.Err }

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

// invoke calls a hook unless ctx is done, whose cause is then the error: a hook that fails because its turn has ended has
// not failed by itself.
func invoke[T any](ctx context.Context, hook Hook, plugin string, call func() (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	out, err := contain(call)
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
