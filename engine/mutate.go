package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// receipt is the idempotency key of a request and what it stands for; the zero receipt is a request without a key.
type receipt struct {
	key  string
	hash []byte
}

// newReceipt covers the method and its params, all but the key itself.
func newReceipt(method, key string, params any) receipt {
	if key == "" {
		return receipt{}
	}
	sum := sha256.New()
	sum.Write([]byte(method + "\n"))
	sum.Write(withoutKey(params))
	return receipt{key: key, hash: sum.Sum(nil)}
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

// replayable is a result that can say it is an earlier one.
type replayable[T any] interface {
	*T
	MarkDuplicate()
}

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
	rc := newReceipt(method, key, params)
	if result, hit, err := replayed[T, P](ctx, e, rc); hit || err != nil {
		return result, err
	}
	return do(ctx, e, id, func(ctx context.Context, st *state) (*T, error) {
		if result, hit, err := replayed[T, P](ctx, e, rc); hit || err != nil {
			return result, err
		}
		result, err := f(ctx, st, rc)
		if err != nil {
			return nil, err
		}
		return result, nil
	})
}

// single runs a change that is no session's, or that takes long, once at a time per key.
func single[T any, P replayable[T]](ctx context.Context, e *Engine, method, key string, params any, f func(receipt) (*T, error)) (*T, error) {
	rc := newReceipt(method, key, params)
	if result, hit, err := replayed[T, P](ctx, e, rc); hit || err != nil {
		return result, err
	}
	if key == "" {
		return f(rc)
	}
	shared, err, _ := e.once.Do(key+"\n"+string(rc.hash), func() (any, error) { return f(rc) })
	if err != nil {
		return nil, err
	}
	result := *shared.(*T) // a copy for each caller
	return &result, nil
}

// list is never null on the wire.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func itoa(n int) string { return strconv.Itoa(n) }
