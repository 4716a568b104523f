package engine

import (
	"context"
	"testing"
)

// When the result of a call is there and the wait for it is over, too, a select takes either of the two.
func TestInTimeReturnsResultThatIsThere(t *testing.T) {
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
