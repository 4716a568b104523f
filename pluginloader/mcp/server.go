package mcp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
)

// server is one server, for all who have configured it alike.
type server struct {
	pool    *Pool
	end     *endpoint
	output  *child.Log // of the plugin that came first
	super   child.Supervisor[*life]
	login   *login               // nil: nobody logs in to it
	list    atomic.Pointer[List] // as it was said last; nil: it never was
	running sync.WaitGroup

	mu       sync.Mutex
	users    map[*Part]int
	retrying bool
	asking   bool // for the list
	again    bool // once the list is there: it has changed meanwhile
	closed   bool
}

func newServer(p *Pool, e *endpoint, output *child.Log) *server {
	output.Hide(e.secrets...)
	s := &server{pool: p, end: e, output: output, users: map[*Part]int{}}
	s.super.Plugin, s.super.Launch, s.super.Tireless = e.label, s.launch, e.transport() == manifest.TransportHTTP
	s.super.Report = s.report
	s.login = newLogin(s)
	return s
}

func (s *server) join(by *Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[by]++
}

// left takes a user away, and tells whether it was the last.
func (s *server) left(by *Part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[by]--; s.users[by] <= 0 {
		delete(s.users, by)
	}
	return len(s.users) == 0
}

// goes runs f in the background, unless the server is closed.
func (s *server) goes(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Go(f)
	}
}

// retry tries until the server is there, is quarantined, or is closed.
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

// listed takes a list. If it is another one, all who use the server are told.
func (s *server) listed(ctx context.Context, list *List) {
	if before := s.list.Swap(list); !before.same(list) {
		s.tell(ctx)
	}
}

// tell has all who use the server look at its tools again.
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

// report lets all who use the server know that it fails too often, or works again.
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

// relist hears that the list has changed. It is asked for once more if it changes meanwhile.
func (s *server) relist(ctx context.Context, l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again = s.asking; s.asking || s.closed {
		return
	}
	s.asking = true
	s.running.Go(func() {
		for again := true; again; {
			s.ask(ctx, l)
			s.mu.Lock()
			again = s.again
			s.again, s.asking = false, again
			s.mu.Unlock()
		}
	})
}

func (s *server) ask(ctx context.Context, l *life) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.pool.config.Times.Connect, child.ErrLate)
	defer cancel()
	ctx, leave := l.bound(ctx)
	defer leave()
	list, err := listTools(ctx, l.joined(), s.warn)
	if err != nil {
		s.warn("its list of tools is not taken: " + s.clean(err).Error())
		return
	}
	s.listed(context.WithoutCancel(ctx), list)
}

func (s *server) warn(text string) {
	s.output.Add(slog.LevelWarn, "mcp server "+s.end.label+": "+text)
}

// clean is an error without secrets.
func (s *server) clean(err error) error {
	return errors.New(cut(s.end.hide.Replace(err.Error()), maxMessage))
}

// maxMessage is where a server's words are cut in an error.
const maxMessage = 4000

// close ends the server, and returns when nothing is left of it.
func (s *server) close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if l := s.super.Close(); l != nil {
		l.stop(ctx)
	}
	s.running.Wait()
}
