package mcp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/sandbox"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
)

// server is one server of the pool, for all Parts with the same endpoint. Its supervisor connects
// on demand and reconnects after failures. mu protects the fields below it.
type server struct {
	pool    *Pool
	end     *endpoint
	output  *child.Log // log of the plugin that used the server first
	super   child.Supervisor[*life]
	login   *login                      // nil: the server needs no login by lashd
	list    atomic.Pointer[List]        // the newest list; nil: none yet
	samples samples                     // sampling requests
	box     atomic.Pointer[sandbox.Box] // of the newest process, as sessions have it; nil: none
	running sync.WaitGroup              // goroutines of the server

	mu       sync.Mutex
	users    map[*Part]int // number of uses by each Part
	retrying bool          // a goroutine is connecting
	asking   bool          // a goroutine is fetching the list
	again    bool          // the list changed while it was being fetched
	fetched  time.Time     // when the list was last fetched after a change
	closed   bool          // close was called
}

// newServer returns a server without a connection. A server over HTTP is never quarantined, because
// its failures may be those of the network.
func newServer(p *Pool, e *endpoint, output *child.Log) *server {
	output.Hide(e.secrets...)
	s := &server{pool: p, end: e, output: output, users: map[*Part]int{}}
	s.super.Plugin, s.super.Launch, s.super.Tireless = e.label, s.launch, e.transport() == manifest.TransportHTTP
	s.super.Report = s.report
	s.login = newLogin(s)
	return s
}

// join adds a user.
func (s *server) join(by *Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[by]++
}

// left removes a user and reports whether it was the last.
func (s *server) left(by *Part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[by]--; s.users[by] <= 0 {
		delete(s.users, by)
	}
	return len(s.users) == 0
}

// goes runs f in the background, unless the server is closed. close waits for f.
func (s *server) goes(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Go(f)
	}
}

// retry connects in the background until the server works, is quarantined, needs a login, or is
// closed. The supervisor's delays limit the rate. At most one goroutine retries.
func (s *server) retry(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retrying || s.closed {
		return
	}
	s.retrying = true
	s.running.Go(func() {
		for {
			_, err := s.super.Use(ctx)
			if code := child.CodeOf(err); err == nil || code == child.Quarantined || code == child.Stopped || code == child.Modified || s.login.needed() != nil {
				break
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.retrying = false
	})
}

// listed stores a new list and notifies the users if it differs from the last one.
func (s *server) listed(ctx context.Context, list *List) {
	if before := s.list.Swap(list); !before.same(list) {
		s.tell(ctx)
	}
}

// tell makes all users compute their tools again.
func (s *server) tell(ctx context.Context) {
	s.mu.Lock()
	users := slices.Collect(maps.Keys(s.users))
	s.mu.Unlock()
	s.goes(func() {
		for _, p := range users {
			p.changed(ctx)
		}
	})
}

// report calls Health of all users. The supervisor calls it.
func (s *server) report() {
	s.mu.Lock()
	users := slices.Collect(maps.Keys(s.users))
	s.mu.Unlock()
	for _, p := range users {
		if p.config.Health != nil {
			p.config.Health()
		}
	}
}

// relist fetches the list in the background after the server reported a change. If it changes again
// during that, it is fetched once more. Until then the users keep the old tools.
func (s *server) relist(ctx context.Context, l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again = s.asking; s.asking || s.closed {
		return
	}
	s.asking = true
	s.running.Go(func() {
		for again := true; again; {
			s.pause(l)
			s.ask(ctx, l)
			s.mu.Lock()
			again = s.again
			s.again, s.asking = false, again
			s.mu.Unlock()
		}
	})
}

// relistPause is the time between two fetches of a list that changes all the time.
const relistPause = time.Second

// pause waits until the list may be fetched again, or the connection ends. Without it, a server that reports a change after each list would
// keep lashd busy.
func (s *server) pause(l *life) {
	s.mu.Lock()
	wait := time.Until(s.fetched.Add(relistPause))
	s.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.done:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = time.Now()
}

// ask fetches the list once. If that fails, the tools stay as they were.
func (s *server) ask(ctx context.Context, l *life) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.pool.config.Times.Connect, child.ErrLate)
	defer cancel()
	ctx, leave := l.bound(ctx)
	defer leave()
	list, err := listAll(ctx, l.joined(), s.warn)
	if err != nil {
		s.warn("its new list of tools was rejected: " + s.clean(err).Error())
		return
	}
	s.listed(context.WithoutCancel(ctx), list)
}

// warn writes a warning to the log of the first plugin.
func (s *server) warn(text string) {
	s.output.Add(slog.LevelWarn, "mcp server "+s.end.label+": "+text)
}

// clean returns an error with its text cut and without secrets.
func (s *server) clean(err error) error {
	return errors.New(cut(s.end.hide.Replace(err.Error()), maxMessage))
}

// maxMessage is the maximum length in bytes of a server's text in an error.
const maxMessage = 4000

// hangUp ends the connection or process, if there is one, and forgets earlier failures. It reports whether there was one. It does not wait
// for the end; the next start does.
func (s *server) hangUp(ctx context.Context) bool {
	l, _ := s.super.Look()
	s.super.Resume()
	if l == nil {
		return false
	}
	l.end(child.Stopped, errors.New("was restarted"))
	ctx = context.WithoutCancel(ctx)
	s.goes(func() { l.stop(ctx) })
	return true
}

// close ends the server and returns when nothing of it is left.
func (s *server) close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.pool.abandon(s)
	if l := s.super.Close(); l != nil {
		l.stop(ctx)
	}
	s.running.Wait()
}
