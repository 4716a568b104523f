package workgroup

import (
	"context"
	"errors"
	"time"
)

const (
	// pluginLimit is how long a call of plugins may take.
	pluginLimit = 10 * time.Second
	// returnGrace is how much longer CallPlugin waits for a call whose context is done. Plugin code has limits of its own, which name the
	// plugin and expire long before; this one is for code without such a limit.
	returnGrace = 6 * time.Second
)

// ErrSlowPlugin means that plugins did not return in time.
var ErrSlowPlugin = errors.New("the plugins took too long")

// PluginContext is a context for one call of plugins: it is done with ErrSlowPlugin after ten seconds.
func PluginContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, pluginLimit, ErrSlowPlugin)
}

type result[T any] struct {
	v   T
	err error
}

// CallPlugin calls plugins with a PluginContext. It abandons a call that does not return when that is done, and then drops the result. A
// panic of the call is its error.
func CallPlugin[T any](ctx context.Context, g *Group, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := PluginContext(ctx)
	defer cancel()
	return CallPluginUntilDone(ctx, g, call)
}

// CallPluginUntilDone is CallPlugin without a limit besides that of ctx.
func CallPluginUntilDone[T any](ctx context.Context, g *Group, call func(context.Context) (T, error)) (T, error) {
	done := make(chan result[T], 1)
	g.GoCall(func() { done <- contained(ctx, g, call) })
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), returnGrace, context.Cause(ctx))
	defer cancel()
	return await(grace, done)
}

// contained makes the panic of a call an error.
func contained[T any](ctx context.Context, g *Group, call func(context.Context) (T, error)) (r result[T]) {
	defer func() {
		if p := recover(); p != nil {
			r.err = g.Recovered("plugins", "", p)
		}
	}()
	r.v, r.err = call(ctx)
	return r
}

// await waits for a result until ctx is done. A result that arrived by then counts.
func await[T any](ctx context.Context, done <-chan result[T]) (T, error) {
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.v, r.err
	default:
		return result[T]{}.v, context.Cause(ctx)
	}
}
