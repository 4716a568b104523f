// Package fakemodel is a scripted model server for end-to-end tests and
// benchmarks. It speaks OpenAI Chat Completions on a loopback port, streaming
// and not, and answers at once, so what a caller measures is the caller.
//
// A request is scripted in one of two ways. A marker in its last user message
// says what to answer, which lets one server serve any number of sessions:
//
//	[[fake deltas=2000 size=6 flush=64]]
//	[[fake tool=shell args64=eyJjb21tYW5kIjoidHJ1ZSJ9 calls=2 think=5]]
//
// Without a marker the request takes the first [Step] of the queue that fits
// it. Steps also carry the faults: refusals, cut and reset streams, stalls,
// malformed chunks. A server that was never given a step answers "ok".
//
// All methods may be called from any goroutine.
package fakemodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// keptBodies bounds the memory that recorded request bodies may hold.
const keptBodies = 64 << 20

// Server answers as a model would. It is an http.Handler, so a test that brings
// its own listener can serve it there.
type Server struct {
	// URL is what an OpenAI client takes as its base URL, "/v1" included; set by Start.
	URL string

	mux    *http.ServeMux
	http   *http.Server
	served sync.WaitGroup // the accept loop, then every handler
	closed chan struct{}

	mu       sync.Mutex
	closing  bool
	scripted bool // a step was given at some time
	steps    []Step
	problems []error
	requests []*Request
	received int           // requests ever recorded
	bodies   int           // bytes held by requests[oldest:]
	oldest   int           // index of the first request that still has its body
	arrived  chan struct{} // closed and replaced with each request
	releases int           // calls of Release that no stall has used
	released chan struct{} // closed and replaced by Release
}

// New returns a server that listens nowhere yet.
func New(steps ...Step) *Server {
	s := &Server{
		mux:      http.NewServeMux(),
		closed:   make(chan struct{}),
		arrived:  make(chan struct{}),
		released: make(chan struct{}),
	}
	s.mux.HandleFunc("POST /v1/chat/completions", s.completions)
	s.mux.HandleFunc("GET /v1/models", models)
	s.Push(steps...)
	return s
}

// Start serves the steps on a free loopback port until Close. Like
// httptest.NewServer it starts its own goroutine, because a test has no Run to put it in.
func Start(steps ...Step) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fakemodel: %w", err)
	}
	s := New(steps...)
	s.URL = "http://" + l.Addr().String() + "/v1"
	s.http = &http.Server{Handler: s}
	s.served.Go(func() { s.http.Serve(l) }) // always ErrServerClosed
	return s, nil
}

// Close ends all replies, also stalled ones, and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return
	}
	s.closing = true
	s.mu.Unlock()
	close(s.closed)
	if s.http != nil {
		s.http.Close()
	}
	s.served.Wait()
}

// Push appends steps to the queue.
func (s *Server) Push(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripted = s.scripted || len(steps) > 0
	s.steps = append(s.steps, steps...)
}

// Release continues one stalled reply: the one that waits, or the next that would.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releases++
	close(s.released)
	s.released = make(chan struct{})
}

// Requests are the chat requests received since Reset, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	s.mu.Unlock()
	for i := range list {
		// a body that does not decode was answered with 400; its Chat is zero
		json.Unmarshal(list[i].Body, &list[i].Chat)
	}
	return list
}

// Reset forgets the recorded requests.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.bodies, s.oldest = nil, 0, 0
}

// Await returns when n requests have been received since Reset.
func (s *Server) Await(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		have, arrived := len(s.requests), s.arrived
		s.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return fmt.Errorf("fakemodel: %d of %d requests: %w", have, n, context.Cause(ctx))
		}
	}
}

// Check reports requests that no step fitted, and steps that no request took.
func (s *Server) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.Join(s.problems...)
	if n := len(s.steps); n > 0 {
		err = errors.Join(err, fmt.Errorf("fakemodel: %d steps left, the first wants %v", n, s.steps[0].When))
	}
	return err
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		http.Error(w, "closing", http.StatusServiceUnavailable)
		return
	}
	s.served.Add(1) // under mu, so never while Close already waits
	s.mu.Unlock()
	defer s.served.Done()
	s.mux.ServeHTTP(w, r)
}

func models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"object":"list","data":[{"id":"fake","object":"model","created":1,"owned_by":"fake"}]}`)
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	rec := newRequest(r)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away while sending
	}
	rec.Body, rec.Size, rec.Read = body, len(body), time.Now()
	n := s.record(rec)

	tail, err := parseTail(body)
	if err != nil {
		s.refuse(w, err)
		return
	}
	rp := &reply{
		srv:    s,
		ctx:    r.Context(),
		w:      w,
		flush:  http.NewResponseController(w),
		tail:   tail,
		number: n,
		size:   len(body),
	}
	defer func() { s.finish(rec, rp.sent) }()

	m, found, err := parseMarker(tail.User)
	switch {
	case err != nil:
		s.refuse(w, err)
	case found:
		rp.playMarker(m)
	default:
		step, err := s.take(tail)
		if err != nil {
			s.refuse(w, err)
			return
		}
		rp.playStep(step)
	}
}

// refuse answers 400, which no client retries, and keeps the error for Check.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	err = fmt.Errorf("fakemodel: %w", err)
	s.mu.Lock()
	s.problems = append(s.problems, err)
	s.mu.Unlock()
	writeError(w, http.StatusBadRequest, err.Error())
}

// take removes the first step that fits from the queue.
func (s *Server) take(t tail) (Step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.scripted {
		return Say("ok"), nil
	}
	for i, st := range s.steps {
		if st.When.fits(t) {
			s.steps = append(s.steps[:i:i], s.steps[i+1:]...)
			return st, nil
		}
	}
	var want []string
	for _, st := range s.steps {
		want = append(want, st.When.String())
	}
	return Step{}, fmt.Errorf("no step for a request with %d tool results after %.200q; queued: [%s]", t.Results, t.User, strings.Join(want, "; "))
}

// record adds the request and returns its number. Numbers count from 1, and Reset does not restart
// them.
func (s *Server) record(r *Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received++
	s.requests = append(s.requests, r)
	s.bodies += len(r.Body)
	for s.bodies > keptBodies && s.oldest < len(s.requests)-1 {
		s.bodies -= len(s.requests[s.oldest].Body)
		s.requests[s.oldest].Body = nil
		s.oldest++
	}
	close(s.arrived)
	s.arrived = make(chan struct{})
	return s.received
}

func (s *Server) finish(r *Request, sent []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Sent, r.End = sent, time.Now()
}

// stall blocks until Release, and reports false when the reply must end instead.
func (s *Server) stall(ctx context.Context) bool {
	for {
		s.mu.Lock()
		if s.releases > 0 {
			s.releases--
			s.mu.Unlock()
			return true
		}
		released := s.released
		s.mu.Unlock()
		select {
		case <-released:
		case <-ctx.Done():
			return false
		case <-s.closed:
			return false
		}
	}
}

func writeError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	type body struct {
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	json.NewEncoder(w).Encode(struct {
		Error body `json:"error"`
	}{body{message, "fake_error"}}) // the client may have gone
}
