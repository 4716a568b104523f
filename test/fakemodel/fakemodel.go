// Package fakemodel is a scripted model server for end-to-end tests and
// benchmarks. On a loopback port it speaks OpenAI Chat Completions, streaming
// and not, and the streams of OpenAI Responses, Anthropic Messages and Google
// Gemini. It answers at once, so what a caller measures is the caller.
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
// The same steps and markers drive all APIs. [Server.Strict] makes the server
// reject what the vendors reject, such as calls without results and signatures
// of another model.
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
	// URL is what an OpenAI client takes as its base URL, "/v1" included; set by Start. Base has those of the other APIs.
	URL string

	mux    *http.ServeMux
	http   *http.Server
	served sync.WaitGroup // the accept loop, then every handler
	closed chan struct{}

	mu       sync.Mutex
	closing  bool
	scripted bool                       // a step was given at some time
	strict   *string                    // Strict was called with this key
	issued   map[string]map[string]bool // signatures, by API and model
	steps    []Step
	think    func(Chat) Step // set by Think
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
		issued:   map[string]map[string]bool{},
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/"} {
		s.mux.HandleFunc("POST "+path, s.answer)
	}
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /v1beta/models", s.models)
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

// Think makes the server answer each later request that has no marker with the step that f returns for it, until it is called with
// nil. Steps of the queue wait for that. Several requests can call f at the same time.
func (s *Server) Think(f func(Chat) Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.think = f
}

// Release continues one stalled reply: the one that waits, or the next that would.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releases++
	close(s.released)
	s.released = make(chan struct{})
}

// Strict makes the server check each later request as the vendors do: it must carry this key, or any key if it is "", with the other
// headers of its API, and its conversation must be one that the API accepts. The server answers 401 and 400 to others, and Check
// reports the latter.
func (s *Server) Strict(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strict = &key
}

// Requests are the model requests received since Reset, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	s.mu.Unlock()
	for i := range list {
		// a body that does not decode was answered with 400; its Chat is zero
		list[i].Chat, _ = parseChat(&list[i])
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

// models answers with the list of the API that asks.
func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	name := apiOf(r.URL.Path)
	list := `{"object":"list","data":[{"id":"fake","object":"model","created":1,"owned_by":"fake"}]}`
	switch {
	case name == GeminiAPI:
		list = `{"models":[{"name":"models/fake","displayName":"Fake","supportedGenerationMethods":["generateContent"]}]}`
	case r.Header.Get("Anthropic-Version") != "":
		name = AnthropicAPI
		list = `{"data":[{"type":"model","id":"fake","display_name":"Fake","created_at":"2026-01-01T00:00:00Z","deprecated_at":null,"capabilities":null,"line":null,"lifecycle":null,"retires_at":null,"max_input_tokens":200000,"max_tokens":64000}],"has_more":false,"first_id":"fake","last_id":"fake"}`
	}
	if !s.authorized(w, apis[name], r.Header) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, list)
}

// answer answers a model request of any API.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	rec := newRequest(r)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away while sending
	}
	rec.Body, rec.Size, rec.Read = body, len(body), time.Now()
	n := s.record(rec)
	rp := &reply{srv: s, ctx: r.Context(), request: r, api: apis[rec.API], w: w, flush: http.NewResponseController(w), number: n, size: len(body)}
	if !s.authorized(w, rp.api, r.Header) {
		return
	}
	if rp.tail, err = parseTail(rec); err == nil {
		err = s.allowed(rec, rp.tail)
	}
	if err != nil {
		s.refuse(w, rp.api, err)
		return
	}
	defer func() { s.finish(rec, rp.sent) }()
	s.play(rp, rec)
}

// play answers with what the marker of the request says, or with the next step.
func (s *Server) play(rp *reply, rec *Request) {
	m, found, err := parseMarker(rp.tail.User)
	if err != nil {
		s.refuse(rp.w, rp.api, err)
		return
	}
	if found {
		rp.playMarker(m)
		return
	}
	step, err := s.next(rec, rp.tail)
	if err != nil {
		s.refuse(rp.w, rp.api, err)
		return
	}
	rp.playStep(step)
}

// refuse answers 400, which no client retries, and keeps the error for Check.
func (s *Server) refuse(w http.ResponseWriter, a api, err error) {
	err = fmt.Errorf("fakemodel: %w", err)
	s.mu.Lock()
	s.problems = append(s.problems, err)
	s.mu.Unlock()
	writeError(w, a, http.StatusBadRequest, err.Error())
}

// next returns the step for a request: what Think's function says, or the first step that fits.
func (s *Server) next(rec *Request, t tail) (Step, error) {
	s.mu.Lock()
	think := s.think
	s.mu.Unlock()
	if think == nil {
		return s.take(t)
	}
	chat, err := parseChat(rec)
	if err != nil {
		return Step{}, err
	}
	return think(chat), nil
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

func writeError(w http.ResponseWriter, a api, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(a.failure(status, message)) // the client may have gone
}
