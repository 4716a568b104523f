package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// receipt is the idempotency key of a request and what it stands for; the zero receipt is a request without a key.
type receipt struct {
	key  string
	hash []byte
}

// newReceipt covers the method and its params, all but the key itself.
func newReceipt(method, key string, params any) (receipt, error) {
	if key == "" {
		return receipt{}, nil
	}
	if err := checkName("/idempotencyKey", key); err != nil {
		return receipt{}, err
	}
	sum := sha256.New()
	sum.Write([]byte(method + "\n"))
	sum.Write(withoutKey(params))
	return receipt{key: key, hash: sum.Sum(nil)}, nil
}

// withoutKey is the params as canonical JSON: fields in the order of the type, maps in the order of their keys.
func withoutKey(params any) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(encode(params), &fields) != nil {
		return encode(params)
	}
	delete(fields, "idempotencyKey")
	return encode(fields)
}

// with is the receipt as a commit stores it, with the result that a repetition will get.
func (rc receipt) with(result any) *persistence.Receipt {
	if rc.key == "" {
		return nil
	}
	return &persistence.Receipt{Key: rc.key, Hash: rc.hash, Result: encode(result)}
}

// begun is the receipt of a request that is about to do what must not be done twice.
func (rc receipt) begun() *persistence.Receipt {
	return &persistence.Receipt{Key: rc.key, Hash: rc.hash}
}

// remembered makes the receipt of a request durable that stores nothing else.
func (st *state) remembered(ctx context.Context, rc receipt, result any) error {
	kept := rc.with(result)
	if kept == nil {
		return nil
	}
	return st.commit(ctx, st.change(persistence.Commit{Receipt: kept}))
}

// replayable is a result that can say it is an earlier one.
type replayable[T any] interface {
	*T
	MarkDuplicate()
}

// errBegun means that a request with the same key has begun before, and that no answer of it is known.
var errBegun = errors.New("it was interrupted after it had begun; nobody knows what it did, and it is not run again")

// replayed answers a repeated request from its receipt.
func replayed[T any, P replayable[T]](ctx context.Context, e *Engine, rc receipt) (*T, bool, error) {
	if rc.key == "" {
		return nil, false, nil
	}
	stored, err := e.store.Receipt(ctx, rc.key, rc.hash)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if len(stored) == 0 {
		return nil, false, errBegun
	}
	result := new(T)
	if err := json.Unmarshal(stored, result); err != nil {
		return nil, false, fmt.Errorf("receipt %s: %w", rc.key, err)
	}
	P(result).MarkDuplicate()
	return result, true, nil
}

// mutate runs a change of a session on its actor, unless its key was seen before: then the first answer is given again.
// A repetition that comes while the first is still in progress waits for it, because the actor does one at a time.
func mutate[T any, P replayable[T]](ctx context.Context, e *Engine, id protocol.SessionID, method, key string, params any,
	f func(context.Context, *state, receipt) (*T, error),
) (*T, error) {
	rc, err := newReceipt(method, key, params)
	if err != nil {
		return nil, err
	}
	result, err := do(ctx, e, id, func(ctx context.Context, st *state) (*T, error) {
		if result, hit, err := replayed[T, P](ctx, e, rc); hit || err != nil {
			return result, err
		}
		return f(ctx, st, rc)
	})
	return first[T, P](ctx, e, rc, result, err)
}

// mutateOnce is mutate for a change that either commits its receipt or fails: whether its key was seen before is only
// asked when it fails, because the commit finds out by itself.
func mutateOnce[T any, P replayable[T]](ctx context.Context, e *Engine, id protocol.SessionID, method, key string, params any,
	f func(context.Context, *state, receipt) (*T, error),
) (*T, error) {
	rc, err := newReceipt(method, key, params)
	if err != nil {
		return nil, err
	}
	return do(ctx, e, id, func(ctx context.Context, st *state) (*T, error) {
		result, err := f(ctx, st, rc)
		if err == nil || errors.Is(err, persistence.ErrReceiptConflict) {
			return result, err
		}
		if first, hit, failed := replayed[T, P](ctx, e, rc); hit || failed != nil {
			return first, failed
		}
		return nil, err
	})
}

// repeated is the answer to a request that is refused: the first one, if it was accepted before.
func repeated[T any, P replayable[T]](ctx context.Context, e *Engine, method, key string, params any, refused error) (*T, error) {
	rc, err := newReceipt(method, key, params)
	if err != nil {
		return nil, err
	}
	if result, hit, err := replayed[T, P](ctx, e, rc); hit || err != nil {
		return result, err
	}
	return nil, refused
}

// first is the answer of a change that may have met its own repetition.
func first[T any, P replayable[T]](ctx context.Context, e *Engine, rc receipt, result *T, err error) (*T, error) {
	if errors.Is(err, errReplayed) {
		result, _, err = replayed[T, P](ctx, e, rc)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// single runs a change that is no session's, or that takes long, once at a time per key. A repetition waits for the
// first; another request with the same key is refused before it does anything.
func single[T any, P replayable[T]](ctx context.Context, e *Engine, method, key string, params any, f func(receipt) (*T, error)) (*T, error) {
	rc, err := newReceipt(method, key, params)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return f(rc)
	}
	for {
		// What has begun may be in progress.
		if result, hit, err := replayed[T, P](ctx, e, rc); hit || err != nil && !errors.Is(err, errBegun) {
			return result, err
		}
		mine, theirs := e.keys.begin(rc)
		if mine == nil {
			if !bytes.Equal(theirs.hash, rc.hash) {
				return nil, fmt.Errorf("key %s: %w", key, persistence.ErrReceiptConflict)
			}
			select {
			case <-theirs.done: // look again
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return once[T, P](ctx, e, rc, mine, f)
	}
}

func once[T any, P replayable[T]](ctx context.Context, e *Engine, rc receipt, mine *flight, f func(receipt) (*T, error)) (*T, error) {
	defer e.keys.end(rc.key, mine)
	if result, hit, err := replayed[T, P](ctx, e, rc); hit || err != nil { // the flight before this one may just have ended
		return result, err
	}
	result, err := f(rc)
	return first[T, P](ctx, e, rc, result, err)
}

// flights are the keyed requests in progress.
type flights struct {
	mu   sync.Mutex
	open map[string]*flight
}

type flight struct {
	hash []byte
	done chan struct{}
}

func (f *flights) begin(rc receipt) (mine, theirs *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other, ok := f.open[rc.key]; ok {
		return nil, other
	}
	mine = &flight{hash: rc.hash, done: make(chan struct{})}
	f.open[rc.key] = mine
	return mine, nil
}

func (f *flights) end(key string, mine *flight) {
	f.mu.Lock()
	delete(f.open, key)
	f.mu.Unlock()
	close(mine.done)
}

// list is never null on the wire.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func itoa(n int) string { return strconv.Itoa(n) }

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
