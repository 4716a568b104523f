package receipt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/persistence"
)

// Result is the result of a method that can be marked as the answer to a repetition.
type Result[T any] interface {
	*T
	MarkDuplicate()
}

// ErrReplayed means that the store rejected a commit because a request with the same key was committed first. First
// turns it into that request's answer.
var ErrReplayed = errors.New("another request with the same idempotency key was committed first")

// ErrBegun means that a request with the same key began before and its answer is unknown.
var ErrBegun = errors.New("the first request with this idempotency key was interrupted; its effect is unknown and it is not run again")

// Find returns the answer of the first request with the key, and whether there is one. It fails with ErrBegun if that
// request has no answer, and with persistence.ErrReceiptConflict if it was a different request.
func Find[T any, P Result[T]](ctx context.Context, store *persistence.Store, rc Request) (*T, bool, error) {
	if rc.Key == "" {
		return nil, false, nil
	}
	stored, err := store.Receipt(ctx, rc.Key, rc.Hash)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if len(stored) == 0 {
		return nil, false, ErrBegun
	}
	result := new(T)
	if err := json.Unmarshal(stored, result); err != nil {
		return nil, false, fmt.Errorf("receipt %s: %w", rc.Key, err)
	}
	P(result).MarkDuplicate()
	return result, true, nil
}

// First returns the outcome of a request. If its commit failed with ErrReplayed, that is the answer of the request that
// came first.
func First[T any, P Result[T]](ctx context.Context, store *persistence.Store, rc Request, result *T, err error) (*T, error) {
	if errors.Is(err, ErrReplayed) {
		result, _, err = Find[T, P](ctx, store, rc)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// Repeated returns the answer to a request that would be refused now: the first answer if it is a repetition, else
// refused.
func Repeated[T any, P Result[T]](ctx context.Context, store *persistence.Store, method, key string, params any, refused error) (*T, error) {
	rc, err := For(method, key, params)
	if err != nil {
		return nil, err
	}
	if result, hit, err := Find[T, P](ctx, store, rc); hit || err != nil {
		return result, err
	}
	return nil, refused
}
