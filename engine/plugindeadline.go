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
func callPluginOrLeave[T any](ctx context.Context, e *Engine, call func(context.Context) (T, error)) (T, error) {
	v, err, _ := waitServing(ctx, e, call, nil, nil)
	return v, err
}

// callPluginOnActor is callPlugin for the actor, which serves requests meanwhile that need no plugins. If one of them ends the state, the
// call's context ends, too. A call that does not return takes the state with it: the session is loaded again.
func callPluginOnActor[T any](st *state, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(st.ctx, pluginPatience, ErrSlowPlugin)
	defer cancel()
	return serveWhile(ctx, st, call)
}

// serveWhile is callPluginOnActor until ctx is done.
func serveWhile[T any](ctx context.Context, st *state, call func(context.Context) (T, error)) (T, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	v, err, returned := waitServing(ctx, st.eng, call, st.urgent, func(f func(*state)) {
		f(st)
		if st.broken != nil {
			end(st.broken)
		}
	})
	if !returned {
		st.broken = errors.Join(st.broken, err)
	}
	return v, err
}

// waitServing calls plugins beside whoever waits for them, who serves what comes in meanwhile. It tells whether they have returned.
func waitServing[T any](
	ctx context.Context, e *Engine, call func(context.Context) (T, error), in <-chan func(*state), serve func(func(*state)),
) (v T, err error, returned bool) {
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
	over, stuck := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case a := <-done:
			return a.v, a.err, true
		case f := <-in:
			serve(f)
		case <-over:
			limit := time.NewTimer(stuckPatience)
			defer limit.Stop()
			over, stuck = nil, limit.C
		case <-stuck:
			if a, ok := ready(done); ok {
				return a.v, a.err, true
			}
			return v, context.Cause(ctx), false
		}
	}
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
