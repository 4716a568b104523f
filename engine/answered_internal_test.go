package engine

import (
	"context"
	"testing"
)

// When an answer is there and the wait for it is over, too, a select takes one of the two as it likes.
func TestAnswersThatAreThereCount(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, got := range map[string]func() bool{
		"of a session": func() bool {
			done := make(chan answer[bool], 1)
			done <- answer[bool]{v: true}
			v, err := answered(over, done)
			return v && err == nil
		},
		"of plugins": func() bool {
			done := make(chan bool, 1)
			done <- true
			v, returned := inTime(over, done)
			return v && returned
		},
	} {
		t.Run("runtime/K02 "+name, func(t *testing.T) {
			for range 100 {
				if !got() {
					t.Fatal("the answer is lost")
				}
			}
		})
	}
}
