package deadline_test

import (
	"context"
	"errors"
	"testing"

	"lashd/internal/deadline"
)

func TestWorkDoesNotStartAfterItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begun := make(chan struct{})
	_, err := deadline.Change(ctx, 0, nil, nil, func(context.Context, *deadline.Gate) (int, error) {
		close(begun)
		return 1, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that it was cancelled", err)
	}
	select {
	case <-begun:
		t.Error("the work was begun")
	default:
	}
}
