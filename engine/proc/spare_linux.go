package proc

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// spareLimit is how long a supervisor waits for a command that may never come.
const spareLimit = time.Minute

// spare is a supervisor that is started before it is needed, which takes longer than all else at the start of a command. Only a
// process that adopts orphans has one: others may never get to end it.
type spare struct {
	starting sync.WaitGroup

	mu     sync.Mutex
	ready  *supervised
	of     string // the nonce that it bears
	expiry *time.Timer
}

// supervisor is one that waits for its request, which is to have the nonce.
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

// root is the part of a nonce that all children of a daemon have.
func root(nonce string) string {
	of, _, _ := strings.Cut(nonce, "/")
	return of
}

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

// keepSpare starts the next supervisor, if there is none yet.
func (r *relations) keepSpare(nonce string) {
	sp := &r.spare
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if !r.subreaper.Load() || sp.ready != nil {
		return
	}
	s, err := newSupervisor(root(nonce))
	if err != nil {
		return // the next command says why
	}
	sp.ready, sp.of = s, root(nonce)
	sp.expiry = time.AfterFunc(spareLimit, func() { sp.drop(s) })
}

// dropAll ends the spare once no other is being started.
func (sp *spare) dropAll() {
	sp.starting.Wait()
	sp.drop(nil)
}

// drop ends a spare that nobody took; nil: whichever there is.
func (sp *spare) drop(which *supervised) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if s := sp.ready; s != nil && (which == nil || which == s) {
		sp.ready = nil
		sp.expiry.Stop()
		s.dismiss()
	}
}

// waits tells whether a supervisor without a request is still there.
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

// dismiss ends a supervisor that has no request.
func (s *supervised) dismiss() {
	s.cmd.Process.Kill() // has nothing to clean up; first of all, as it would take the end of the link for ours
	s.link.Close()
	s.cmd.Wait()
	family.forget(s)
}
