package authority

import (
	"context"

	"lashd/rpc/protocol"
)

type (
	sandboxKey struct{}
	loadedKey  struct{}
)

// FromLoaded marks a context: what is asked with it is asked by a plugin that does not ship with lashd.
func FromLoaded(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadedKey{}, true)
}

// IsLoaded tells whether a plugin asks that does not ship with lashd.
func IsLoaded(ctx context.Context) bool { return ctx.Value(loadedKey{}) != nil }

// FromSandbox marks a context: what is asked with it is asked by a plugin in a sandbox.
func FromSandbox(ctx context.Context) context.Context {
	return context.WithValue(ctx, sandboxKey{}, true)
}

// InSandbox is the ceiling of whoever asks with a context: nil, or that it is in a sandbox.
func InSandbox(ctx context.Context) *protocol.Ceiling {
	return Sandboxed(ctx.Value(sandboxKey{}) != nil)
}

// Sandboxed is the ceiling of an asker that is in a sandbox; nil if it is not.
func Sandboxed(is bool) *protocol.Ceiling {
	if !is {
		return nil
	}
	return &protocol.Ceiling{Sandboxed: true}
}
