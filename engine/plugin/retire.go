package plugin

import (
	"context"
	"errors"
	"sync"
)

// ErrRetired means that a newer host has replaced this one, which opens no more sessions. Retry with the newest host.
var ErrRetired = errors.New("a newer set of plugins has replaced this one")

// use counts the open sessions of one host.
type use struct {
	mu      sync.Mutex
	open    int
	retired chan struct{} // closed when the last session is closed; nil: the host is in use
	revoked bool
}

// enter counts a session. It reports false if the host is retired.
func (u *use) enter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.retired != nil {
		return false
	}
	u.open++
	return true
}

// leave ends the use by a session that enter has counted.
func (u *use) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open--
	if u.open == 0 && u.retired != nil {
		close(u.retired)
	}
}

// Retire makes later calls of Open fail with ErrRetired. The channel is closed once the last open session is closed;
// every call returns the same channel.
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

// Revoke records that a person revoked trust in a plugin of this host. Sessions must not fall back to the host when no
// newer one can be made.
func (h *Host) Revoke() {
	h.use.mu.Lock()
	defer h.use.mu.Unlock()
	h.use.revoked = true
}

// Revoked reports whether Revoke was called.
func (h *Host) Revoked() bool {
	h.use.mu.Lock()
	defer h.use.mu.Unlock()
	return h.use.revoked
}

// Host returns h for every workspace. It lets a fixed host serve where the engine expects a source of hosts.
func (h *Host) Host(context.Context, string) (*Host, error) { return h, nil }
