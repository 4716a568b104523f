package child

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a program that reads on request.
type stuck chan struct{}

func (s stuck) Write(data []byte) (int, error) {
	<-s
	return len(data), nil
}

func TestOutbox(t *testing.T) {
	t.Run("reliability/P14 bytes being written count as queued", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o, reads := NewOutbox(16), make(stuck)
			ended := make(chan error)
			go func() { ended <- o.Run(reads, time.Hour, func() {}) }()
			put := func(n int, want error) {
				t.Helper()
				if err := o.Put(make([]byte, n)); !errors.Is(err, want) {
					t.Errorf("%d bytes: %v, want %v", n, err, want)
				}
				synctest.Wait()
			}
			put(10, nil)
			put(10, ErrFull)
			put(6, nil)
			reads <- struct{}{}
			synctest.Wait()
			put(10, nil)
			put(1, ErrFull)
			reads <- struct{}{}
			reads <- struct{}{}
			synctest.Wait()
			put(100, nil) // one may be larger
			o.Close()
			close(reads)
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	})
}
