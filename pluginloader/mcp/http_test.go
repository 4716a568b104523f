//go:build unix

package mcp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// served is the good server over HTTP, which can lose its memory.
type served struct {
	*httptest.Server
	mu       sync.Mutex
	good     *sdk.Server
	handler  http.Handler
	requests []string // methods, with the value of the header
}

func (s *served) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	good := goodServer()
	s.good = good
	s.handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return good }, nil)
}

func (s *served) end() {
	if s.good == nil {
		return
	}
	for session := range s.good.Sessions() {
		_ = session.Close()
	}
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.Header.Get("X-Key"))
	h := s.handler
	s.mu.Unlock()
	h.ServeHTTP(w, r)
}

func (s *served) asked(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r == method {
			n++
		}
	}
	return n
}

func serve(t *testing.T) *served {
	s := &served{}
	s.forget()
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		s.end()
	})
	return s
}

// at is a plugin with a server of HTTP.
func at(t *testing.T, url string, more ...string) *mcp.Part {
	s := manifest.Server{URL: url, Headers: map[string]string{"X-Key": "${KEY}"}, PassEnv: []string{"KEY"}}
	p := begin(t, pooled(t, append(more, "KEY=s3cret")...), config(t, map[string]manifest.Server{"x": s}))
	t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return p
}

func TestHTTP(t *testing.T) {
	t.Run("runtime/K05 issue/4-2 an HTTP server works like a stdio server, gets its headers in each request, and its session is closed", func(t *testing.T) {
		s := serve(t)
		p := at(t, s.URL)
		if got := names(p); !slices.Equal(got, goodNames) {
			t.Fatalf("tools %q", got)
		}
		h := &host{}
		for name, want := range map[string]string{"mcp__x__echo": "you said hello", "mcp__x__steps": "done"} {
			if out, err := call(t.Context(), p, name, `{"text":"hello"}`, h); err != nil || out.Text != want {
				t.Errorf("%s: %+v %v", name, out, err)
			}
		}
		if got := p.Status()[0]; got.State != mcp.Ready || got.Transport != manifest.TransportHTTP || got.Version != "1.2.3" {
			t.Errorf("%+v", got)
		}
		if err := p.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if s.asked("DELETE s3cret") != 1 {
			t.Errorf("requests %q", s.requests)
		}
		if slices.ContainsFunc(s.requests, func(r string) bool { return !strings.HasSuffix(r, " s3cret") }) {
			t.Errorf("requests %q", s.requests)
		}
	})
	t.Run("runtime/K05 a session that the server has forgotten is opened again, and the call succeeds", func(t *testing.T) {
		count := filepath.Join(t.TempDir(), "calls")
		t.Setenv(countVariable, count)
		s := serve(t)
		p := at(t, s.URL)
		for range 3 {
			s.forget()
			if out, err := call(t.Context(), p, "mcp__x__echo", `{"text":"hello"}`, nil); err != nil || out.Text != "you said hello" {
				t.Fatalf("%+v %v", out, err)
			}
		}
		if got := counted(count); got != "echo\necho\necho\n" {
			t.Errorf("calls made: %q", got)
		}
	})
	t.Run("runtime/K05 a broken connection fails the call without repeating it, and the next call reconnects", func(t *testing.T) {
		count := filepath.Join(t.TempDir(), "calls")
		t.Setenv(countVariable, count)
		s := serve(t)
		p := at(t, s.URL)
		go func() {
			wait.Until(t, "the call", func() bool { return strings.HasPrefix(counted(count), "slow\n") })
			s.CloseClientConnections()
		}()
		out, err := call(t.Context(), p, "mcp__x__slow", `{"text":""}`, nil)
		if err != nil || out.Status != protocol.OutputFailure {
			t.Fatalf("%+v %v", out, err)
		}
		if out, err = call(t.Context(), p, "mcp__x__echo", `{"text":"hello"}`, nil); err != nil || out.Text != "you said hello" {
			t.Errorf("afterwards %+v %v", out, err)
		}
		if got := strings.Count(counted(count), "slow"); got != 1 {
			t.Errorf("it was made %d times", got)
		}
	})
	t.Run("runtime/K05 issue/4-7 an unreachable server is retried until its tools appear", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		c := config(t, map[string]manifest.Server{"x": {URL: "http://" + address}})
		p := begin(t, pooled(t), c)
		t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
		wait.Until(t, "the sixth failure", func() bool { return strings.Count(said(c), "refused") >= 6 })
		if len(p.Tools()) != 0 {
			t.Errorf("tools %q", names(p))
		}
		if l, err = net.Listen("tcp", address); err != nil {
			t.Fatal(err)
		}
		s := &served{}
		s.forget()
		server := &http.Server{Handler: s}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() {
			server.Close()
			s.end()
		})
		wait.Until(t, "its tools", func() bool { return len(p.Tools()) == len(goodNames) })
	})
	for name, answer := range map[string]http.HandlerFunc{
		"it never answers": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client is gone
			<-r.Context().Done()
		},
		"it has no such page": http.NotFound,
		"it answers with too much": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 10 {
				_, _ = w.Write([]byte(`"` + strings.Repeat("x", 1<<20)))
			}
		},
		"it answers with garbage": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{"))
		},
	} {
		t.Run("runtime/K05 issue/4-7 an HTTP server without a handshake is reported in time: "+name, func(t *testing.T) {
			s := httptest.NewServer(answer)
			defer s.Close()
			defer s.CloseClientConnections()
			limit := 1500 * time.Millisecond
			if strings.Contains(name, "too much") {
				limit = patience // to send it takes longer on a busy machine
			}
			began := time.Now()
			p := begin(t, within(t, limit), config(t, map[string]manifest.Server{"x": {URL: s.URL}}))
			defer func() { _ = p.Shutdown(context.Background()) }()
			if took := time.Since(began); took > bound {
				t.Errorf("it took %v", took)
			}
			if got := p.Status()[0]; got.State == mcp.Ready || got.LastError == "" || strings.Contains(name, "too much") != strings.Contains(got.LastError, "larger than 8388608 bytes") {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("runtime/K05 a server that does not answer a request for a stream has none", func(t *testing.T) {
		s := serve(t)
		good := s.handler
		s.mu.Lock()
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				<-r.Context().Done()
				return
			}
			good.ServeHTTP(w, r)
		})
		s.mu.Unlock()
		p := begin(t, within(t, 1500*time.Millisecond), config(t, map[string]manifest.Server{"x": {URL: s.URL}}))
		defer func() { _ = p.Shutdown(context.Background()) }()
		wait.Until(t, "its tools", func() bool { return len(p.Tools()) == len(goodNames) })
	})
	t.Run("reliability/T8 headers go only to the server, and errors contain no values of the environment", func(t *testing.T) {
		var strayed atomic.Bool
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Store(true) }))
		defer other.Close()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		}))
		defer s.Close()
		c := config(t, map[string]manifest.Server{"x": {URL: s.URL + "/?token=${KEY}", PassEnv: []string{"KEY"}}})
		p := begin(t, pooled(t, "KEY=s3cret"), c)
		defer func() { _ = p.Shutdown(context.Background()) }()
		if strayed.Load() {
			t.Error("it went where the server sent it")
		}
		got := p.Status()[0].LastError
		if got == "" || strings.Contains(got+said(c), "s3cret") || !strings.Contains(got, "${KEY}") {
			t.Errorf("the error is %q, the log %q", got, said(c))
		}
	})
}
