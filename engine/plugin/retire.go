package plugin

import (
	"context"
	"errors"
	"sync"
)

// ErrRetired means that no more sessions are opened with a host, because another one has taken its place.
var ErrRetired = errors.New("these plugins are not the newest any more")

// use counts the sessions that are open with a host.
type use struct {
	mu      sync.Mutex
	open    int
	retired chan struct{} // closed once the last is closed; nil: the host is in use
	revoked bool
}

func (u *use) enter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.retired != nil {
		return false
	}
	u.open++
	return true
}

func (u *use) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open--
	if u.open == 0 && u.retired != nil {
		close(u.retired)
	}
}

// Retire has no more sessions opened with the host. What it gives is closed once those that are open have been closed; it is
// the same each time.
func (h *Host) Retire() <-chan struct{} {
	u := h.use
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.retired == nil {
		u.retired = make(chan struct{})
		if u.open == 0 {
			close(u.retired)
		}
	}
	return u.retired
}

// Revoke says that a person has decided against something in the host: no session goes on with it for want of another one.
func (h *Host) Revoke() {
	h.use.mu.Lock()
	defer h.use.mu.Unlock()
	h.use.revoked = true
}

// Revoked tells whether that was said.
func (h *Host) Revoked() bool {
	h.use.mu.Lock()
	defer h.use.mu.Unlock()
	return h.use.revoked
}

// Host is h, wherever a session works: a host that never changes is what an engine needs to know of plugins.
func (h *Host) Host(context.Context, string) (*Host, error) { return h, nil }
