package rpc

import (
	"context"
	"errors"
	"testing"

	"lashd/engine"
)

func TestNotBegun(t *testing.T) {
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errCancelled)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if got := notBegun(cancelled); got != errNotStarted {
		t.Errorf("outside/19 a request that the client cancelled: %v", got)
	}
	if got := notBegun(stopped); !errors.Is(got, engine.ErrShuttingDown) {
		t.Errorf("outside/19 a request that waits while the daemon stops: %v", got)
	}
}
