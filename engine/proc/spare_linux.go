package proc

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// spareLimit is how long a spare supervisor waits for a command.
const spareLimit = time.Minute

// spare holds a supervisor that was started in advance, because starting it takes longer than the rest of starting a
// command. Only a process that adopts orphans keeps one: other programs may exit without ending it.
type spare struct {
	starting sync.WaitGroup // a spare is being started

	mu     sync.Mutex
	ready  *supervised // nil: none
	of     string      // its nonce, without suffix
	expiry *time.Timer // drops it after spareLimit
}

// supervisor returns a supervisor that waits for its request, and registers it under the nonce. It takes the spare if
// that has the right nonce.
func (r *relations) supervisor(nonce string) (s *supervised, err error) {
	if s = r.spare.take(root(nonce)); s == nil {
		if s, err = newSupervisor(nonce); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.supervised[s] = nonce
	return s, nil
}

// root returns a nonce without its suffix.
func root(nonce string) string {
	of, _, _ := strings.Cut(nonce, "/")
	return of
}

// take returns the spare if it has the nonce and still runs; nil: none.
func (sp *spare) take(of string) *supervised {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.ready == nil || sp.of != of {
		return nil
	}
	s := sp.ready
	sp.ready = nil
	sp.expiry.Stop()
	if !s.waits() {
		s.dismiss()
		return nil
	}
	return s
}

// keepSpare starts the next spare supervisor, unless there is one.
func (r *relations) keepSpare(nonce string) {
	sp := &r.spare
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if !r.subreaper.Load() || sp.ready != nil {
		return
	}
	s, err := newSupervisor(root(nonce))
	if err != nil {
		return // the next command reports the reason
	}
	sp.ready, sp.of = s, root(nonce)
	sp.expiry = time.AfterFunc(spareLimit, func() { sp.drop(s) })
}

// dropAll ends the spare after a start in progress has finished.
func (sp *spare) dropAll() {
	sp.starting.Wait()
	sp.drop(nil)
}

// drop ends the spare which, if it has not been taken; nil: any spare.
func (sp *spare) drop(which *supervised) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if s := sp.ready; s != nil && (which == nil || which == s) {
		sp.ready = nil
		sp.expiry.Stop()
		s.dismiss()
	}
}

// waits reports whether a supervisor without a request still runs.
func (s *supervised) waits() (there bool) {
	conn, err := s.link.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(poll, 0)
		there = err == nil && poll[0].Revents == 0
	})
	return err == nil && there
}

// dismiss ends a supervisor without a request.
func (s *supervised) dismiss() {
	s.cmd.Process.Kill() // it has nothing to clean up; kill it before the link closes, or it would take that for the daemon's end
	s.link.Close()
	s.cmd.Wait()
	family.forget(s)
}
