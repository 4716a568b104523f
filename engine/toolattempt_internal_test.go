package engine

import (
	"context"
	"testing"
)

// If both the result of a call and the end of the wait are ready, a select takes either. The result must win.
func TestWithinGraceReturnsAReadyResult(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	t.Run("runtime/K02", func(t *testing.T) {
		for range 100 {
			done := make(chan bool, 1)
			done <- true
			if v, returned := withinGrace(over, done); !v || !returned {
				t.Fatal("the result is lost")
			}
		}
	})
}
