// Package tip is a broadcast without data: it only says "look again".
//
// Code that changes something calls Notify. A reader loops: it takes Next, looks at the source, and waits only if there was
// nothing new. Because it takes Next before it looks, a change in between closes the channel that it already holds, and no
// wake-up is lost. Since a Tip carries no data, a slow reader costs nothing and cannot fall behind.
package tip

import "sync"

// Tip broadcasts changes. The zero value is ready for use; do not copy a Tip after first use. Its methods are safe for
// concurrent use, never block for long and start no goroutines.
type Tip struct {
	mu   sync.Mutex
	next chan struct{} // nil while there are no waiters
}

// Next returns a channel that the next Notify closes. All callers between two notifications share it.
func (t *Tip) Next() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil {
		t.next = make(chan struct{})
	}
	return t.next
}

// Notify wakes all readers that hold a channel from Next.
func (t *Tip) Notify() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next != nil {
		close(t.next)
		t.next = nil
	}
}
