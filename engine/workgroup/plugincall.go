package workgroup

import (
	"context"
	"errors"
	"time"
)

const (
	// pluginLimit is the time limit of a PluginContext.
	pluginLimit = 10 * time.Second
	// returnGrace is how long CallPlugin still waits after the context is done. Plugin code has its own shorter limits,
	// which name the plugin in their error; this one is for code without such a limit.
	returnGrace = 6 * time.Second
)

// ErrSlowPlugin is the cause of a PluginContext that has timed out.
var ErrSlowPlugin = errors.New("the plugins exceeded their time limit")

// PluginContext returns a context for one call of plugins. It ends with ErrSlowPlugin after ten seconds.
func PluginContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, pluginLimit, ErrSlowPlugin)
}

// result is what a call returned.
type result[T any] struct {
	v   T
	err error
}

// CallPlugin runs call with a PluginContext in the group. If call does not return within returnGrace after that has
// ended, CallPlugin abandons it, drops its result and returns the cause of the context. A panic becomes an error.
func CallPlugin[T any](ctx context.Context, g *Group, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := PluginContext(ctx)
	defer cancel()
	return CallPluginUntilDone(ctx, g, call)
}

// CallPluginUntilDone is CallPlugin without a time limit of its own: only ctx limits the call.
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

// contained runs call and converts a panic to an error.
func contained[T any](ctx context.Context, g *Group, call func(context.Context) (T, error)) (r result[T]) {
	defer func() {
		if p := recover(); p != nil {
			r.err = g.Recovered("plugins", "", p)
		}
	}()
	r.v, r.err = call(ctx)
	return r
}

// await waits for a result until ctx is done. A result that is ready at that moment still counts.
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
