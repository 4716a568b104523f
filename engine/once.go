package engine

import (
	"context"

	"lashd/persistence"
)

// Once answers a request that changes what is not the engine's: with the first answer, if its key was seen before, and else with
// what f comes to, which is remembered. It runs one f of a key at a time. After a crash f may be run once more with the same key,
// unless it was answered.
func Once[T any, P replayable[T]](
	ctx context.Context, e *Engine, method string, params interface{ Key() string }, f func() (*T, error),
) (*T, error) {
	return single[T, P](ctx, e, method, params.Key(), params, func(rc receipt) (*T, error) {
		result, err := f()
		if err != nil || rc.key == "" {
			return result, err
		}
		_, err = e.store.Commit(context.WithoutCancel(ctx), &persistence.Commit{Receipt: rc.with(result), AtMs: now()})
		return result, err
	})
}
