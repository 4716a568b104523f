package persistence

import (
	"maps"
	"slices"
	"sync"

	"lashd/engine/tip"
)

// Changes notes which branches and sessions were changed by commits, for a reader that keeps data
// derived from them, such as a search index. It notes nothing before Start. Its methods are safe for
// concurrent use.
type Changes struct {
	Tip tip.Tip // notified after each commit, from Start on

	mu       sync.Mutex
	on       bool
	branches map[int64]struct{}
	sessions map[int64]struct{}
}

// touched is the session and the branch that a commit changed. A deleted session has touched each
// of its branches.
type touched struct{ session, branch int64 }

// Start begins to note changes. Changes from before the call are in the store for the caller to
// read.
func (c *Changes) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = true
	c.branches, c.sessions = map[int64]struct{}{}, map[int64]struct{}{}
}

// Take returns the changed branches and sessions since the last call, in order, and forgets them. A
// branch or session may be listed although it did not change, or although it was deleted.
func (c *Changes) Take() (branches, sessions []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	branches, sessions = slices.Sorted(maps.Keys(c.branches)), slices.Sorted(maps.Keys(c.sessions))
	clear(c.branches)
	clear(c.sessions)
	return branches, sessions
}

// add notes the changes of a committed transaction.
func (c *Changes) add(all []touched) {
	c.mu.Lock()
	on := c.on
	if on {
		for _, t := range all {
			c.branches[t.branch], c.sessions[t.session] = struct{}{}, struct{}{}
		}
	}
	c.mu.Unlock()
	if on {
		c.Tip.Notify()
	}
}
