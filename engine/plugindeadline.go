package engine

import (
	"context"
	"errors"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
)

// stuckPatience is how much longer what was to be over is waited for, until it is left alone. Plugin code has limits of its own,
// which say whose it is and are over long before; this one is for what nobody has thought of.
const stuckPatience = 6 * time.Second

// isSlow tells whether an error is that of plugin code which did not return in time.
func isSlow(err error) bool {
	return errors.Is(err, ErrSlowPlugin) || errors.As(err, new(*plugin.LeftError)) || errors.As(err, new(*tool.SlowError))
}

// callPlugin calls plugins, for pluginPatience at most. A call that does not return then is left alone: nobody waits for it, and its result is
// dropped.
func callPlugin[T any](ctx context.Context, e *Engine, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pluginPatience, ErrSlowPlugin)
	defer cancel()
	return callPluginOrLeave(ctx, e, call)
}

// callPluginOrLeave calls plugins until ctx is done, and leaves a call alone that does not return then.
func callPluginOrLeave[T any](ctx context.Context, e *Engine, call func(context.Context) (T, error)) (v T, err error) {
	done := make(chan answer[T], 1)
	e.goCall(func() {
		var a answer[T]
		defer func() {
			if p := recover(); p != nil {
				a.err = e.panicked("plugins", "", p)
			}
			done <- a
		}()
		a.v, a.err = call(ctx)
	})
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stuckPatience, context.Cause(ctx))
	defer cancel()
	return answered(last, done)
}

// inTime waits for an answer until ctx is done and a moment has passed, which is longer when the daemon stops.
func inTime[T any](ctx context.Context, done <-chan T) (v T, returned bool) {
	select {
	case v = <-done:
		return v, true
	case <-ctx.Done():
	}
	moment := cancelGrace
	if errors.Is(context.Cause(ctx), errStopped) {
		moment = stopPatience
	}
	grace := time.NewTimer(moment)
	defer grace.Stop()
	select {
	case v = <-done:
		return v, true
	case <-grace.C:
		return ready(done)
	}
}
