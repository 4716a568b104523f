package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

func TestLookThatHangs(t *testing.T) {
	t.Run("outside/10 a turn waits a minute for a look that hangs, and nobody looks beside it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &Engine{}
			e.files.places, e.files.open = semaphore.NewWeighted(2), map[string]*workspace{}
			w := &workspace{eng: e, root: "/w", taken: make(chan struct{}, 1), idle: time.NewTimer(time.Hour)}
			e.files.open[w.root] = w
			answer, began := make(chan struct{}), time.Now()
			look := func() (struct{}, error) {
				<-answer
				return struct{}{}, nil
			}
			if _, err := alone(t.Context(), w, look); !errors.Is(err, errFilesSlow) || time.Since(began) != time.Minute {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if w.forget(); e.files.open[w.root] != w {
				t.Error("somebody could look beside it")
			}
			waiting, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := alone(waiting, w, look); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("beside it: %v", err)
			}
			close(answer)
			synctest.Wait()
			if _, err := alone(t.Context(), w, look); err != nil {
				t.Errorf("once it has ended: %v", err)
			}
		})
	})
}
