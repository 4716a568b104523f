package tip

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestNotifyWakesEveryWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tip Tip
		var woken atomic.Int32
		for range 10 {
			go func() {
				<-tip.Next()
				woken.Add(1)
			}()
		}
		synctest.Wait()
		if n := woken.Load(); n != 0 {
			t.Fatalf("%d waiters woke before Notify, want 0", n)
		}
		tip.Notify()
		synctest.Wait()
		if n := woken.Load(); n != 10 {
			t.Errorf("%d waiters woke after Notify, want 10", n)
		}
	})
}

func TestNextOutlivesOnlyOneNotify(t *testing.T) {
	var tip Tip
	tip.Notify() // no effect: there is no waiter
	first := tip.Next()
	if closed(first) {
		t.Fatal("Next returned a channel closed by an earlier Notify")
	}
	if first != tip.Next() {
		t.Error("two calls of Next without a Notify between them differ")
	}
	tip.Notify()
	if !closed(first) {
		t.Error("Notify left the channel of Next open")
	}
	if closed(tip.Next()) {
		t.Error("Next after Notify is closed, want a new channel")
	}
}

// Each follower takes Next and then looks. If a notification could be lost, a follower would wait forever and the bubble
// would report a deadlock.
func TestFollowersSeeTheLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changes, writers = 200, 5
		var tip Tip
		var head atomic.Int32
		var followers sync.WaitGroup
		for range 20 {
			followers.Go(func() {
				for {
					next := tip.Next()
					if head.Load() == changes*writers {
						return
					}
					<-next
				}
			})
		}
		for range writers {
			go func() {
				for range changes {
					head.Add(1)
					tip.Notify()
				}
			}()
		}
		followers.Wait()
	})
}
