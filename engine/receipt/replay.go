package receipt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/persistence"
)

// Result is a result that can say that it is the first answer, given again.
type Result[T any] interface {
	*T
	MarkDuplicate()
}

// ErrReplayed means that a commit was refused because of its receipt: another request with the same key came first.
var ErrReplayed = errors.New("the idempotency key was used meanwhile")

// ErrBegun means that a request with the same key began before, and that its answer is not known.
var ErrBegun = errors.New("it was interrupted after it had begun; nobody knows what it did, and it is not run again")

// Find returns the first answer of a repeated request, and whether there is one. Another request with the same key is
// persistence.ErrReceiptConflict.
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

// First returns the answer of a request that may have met its own repetition: after ErrReplayed that of the first one.
func First[T any, P Result[T]](ctx context.Context, store *persistence.Store, rc Request, result *T, err error) (*T, error) {
	if errors.Is(err, ErrReplayed) {
		result, _, err = Find[T, P](ctx, store, rc)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// Repeated returns the answer to a request that is refused: the first answer if it was accepted before, and else the refusal.
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
