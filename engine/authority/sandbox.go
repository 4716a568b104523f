package authority

import (
	"context"

	"lashd/rpc/protocol"
)

// Keys of context values.
type (
	sandboxKey struct{}
	loadedKey  struct{}
)

// FromLoaded marks a context: a plugin that does not ship with lashd makes the requests.
func FromLoaded(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadedKey{}, true)
}

// IsLoaded reports whether the context was marked by FromLoaded.
func IsLoaded(ctx context.Context) bool { return ctx.Value(loadedKey{}) != nil }

// FromSandbox marks a context: a sandboxed plugin makes the requests.
func FromSandbox(ctx context.Context) context.Context {
	return context.WithValue(ctx, sandboxKey{}, true)
}

// InSandbox returns the ceiling of requests with this context; nil without a mark of FromSandbox.
func InSandbox(ctx context.Context) *protocol.Ceiling {
	return Sandboxed(ctx.Value(sandboxKey{}) != nil)
}

// Sandboxed returns the ceiling of a sandboxed asker; nil if it is not sandboxed.
func Sandboxed(is bool) *protocol.Ceiling {
	if !is {
		return nil
	}
	return &protocol.Ceiling{Sandboxed: true}
}
