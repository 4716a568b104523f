// Package tip is a broadcast that says only "look again".
//
// Whoever changes something calls Notify; whoever follows it loops: take Next, look, and wait only if there was nothing new.
// Because Next is taken before the look, a change that lands in between closes the channel already held, and no wake-up
// is lost. A Tip carries no data: what is true is read from its source, so slow readers cost nothing and never fall behind.
package tip

import "sync"

// Tip is ready for use as its zero value and must not be copied after first use. Its methods are safe for concurrent use,
// never block for long and start no goroutines.
type Tip struct {
	mu   sync.Mutex
	next chan struct{} // nil while nobody waits
}

// Next returns a channel that the first Notify after this call closes. All callers between two notifications share it.
func (t *Tip) Next() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil {
		t.next = make(chan struct{})
	}
	return t.next
}

// Notify wakes everyone who holds a channel from Next.
func (t *Tip) Notify() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next != nil {
		close(t.next)
		t.next = nil
	}
}
