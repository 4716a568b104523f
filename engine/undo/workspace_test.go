package undo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

func TestHangingScan(t *testing.T) {
	t.Run("outside/10 a turn waits a minute for a scan that hangs, and no other scan runs beside it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &Files{places: semaphore.NewWeighted(2), open: map[string]*workspace{}}
			w := &workspace{files: f, root: "/w", locked: make(chan struct{}, 1), idle: time.NewTimer(time.Hour)}
			f.open[w.root] = w
			answer, began := make(chan struct{}), time.Now()
			look := func() (struct{}, error) {
				<-answer
				return struct{}{}, nil
			}
			if _, err := withLock(t.Context(), w, look); !errors.Is(err, errLookTimeout) || time.Since(began) != time.Minute {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if w.unload(); f.open[w.root] != w {
				t.Error("a second scan could start while the first one hangs")
			}
			waiting, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := withLock(waiting, w, look); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a second scan did not wait: %v", err)
			}
			close(answer)
			synctest.Wait()
			if _, err := withLock(t.Context(), w, look); err != nil {
				t.Errorf("after the first scan ended: %v", err)
			}
		})
	})
}
