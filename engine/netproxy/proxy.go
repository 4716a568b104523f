package netproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"lashd/engine/hostrule"
	"lashd/rpc/protocol"
)

// Limits of one proxy. A command that opens more connections waits until others are closed.
const (
	maxConnections = 256
	maxHeader      = 64 << 10         // bytes of a request's header
	headerTime     = 30 * time.Second // to send it
	maxAnswer      = 256 << 10        // bytes of an answer's header
	idleTime       = time.Minute      // of a connection between two requests
	idleTunnel     = 10 * time.Minute // of a CONNECT without any data
	maxRefused     = 100              // hosts that are remembered as refused
)

// Config configures a Proxy.
type Config struct {
	Access *protocol.NetworkAccess // required
	// Resolver resolves the names of hosts. Nil: that of the system.
	Resolver *net.Resolver
	// Unlisted is the reason for a host that nothing allows. Empty: no rule allows it, and the call did not name it.
	Unlisted string
}

// Proxy serves one command. Make it with New.
type Proxy struct {
	config Config
	access access
	onward http.Handler // plain HTTP

	mu      sync.Mutex
	refused []protocol.RefusedHost
	last    map[string]int64 // when a host of refused was refused last, in ms since 1970
}

// New returns a proxy, which serves nothing yet. It fails if a pattern of the access is wrong.
func New(c Config) (*Proxy, error) {
	a, err := compile(c.Access)
	if err != nil {
		return nil, err
	}
	a.unlisted = cmp.Or(c.Unlisted, notAllowed)
	p := &Proxy{config: c, access: a, last: map[string]int64{}}
	p.onward = &httputil.ReverseProxy{
		Rewrite: rewrite, ErrorHandler: p.fail, ErrorLog: log.New(io.Discard, "", 0), FlushInterval: -1,
		Transport: &http.Transport{DialContext: p.dial, MaxResponseHeaderBytes: maxAnswer, IdleConnTimeout: idleTime, DisableCompression: true},
	}
	return p, nil
}

// rewrite prepares a request for its server. The proxy changes nothing about it but what concerns the proxy; the target is in it already.
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values := r.In.Header[name]; values != nil {
			r.Out.Header[name] = values
		}
	}
	r.Out.Header.Del("Proxy-Authorization")
}

// Serve serves the connections of a listener until ctx ends. Then it closes the listener and all connections, and returns.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.answer(own, w, r) }),
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return own },
	}
	defer context.AfterFunc(own, func() { server.Close() })()
	connections := &limited{Listener: l, slots: make(chan struct{}, maxConnections), done: own.Done()}
	_ = server.Serve(connections) // the error says that it was closed, or that the listener is unusable
	cancel()
	server.Close() // its error is that of closing the listener twice
	connections.await()
	p.onward.(*httputil.ReverseProxy).Transport.(*http.Transport).CloseIdleConnections()
}

// Refused returns the hosts that the proxy refused, in order of the first attempt, at most 100.
func (p *Proxy) Refused() []protocol.RefusedHost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// RefusedSince returns the hosts that the proxy refused at a time or later, also if it refused them before.
func (p *Proxy) RefusedSince(ms int64) []protocol.RefusedHost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.refused), func(r protocol.RefusedHost) bool { return p.last[r.Host] < ms })
}

// answer handles one request. ctx is that of the proxy: the context of the request of a tunnel also ends when its client has sent all data.
func (p *Proxy) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	target, err := target(r)
	if err != nil {
		http.Error(w, "lashd: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := p.access.check(target); err != nil {
		p.fail(w, r, err)
		return
	}
	if r.Method != http.MethodConnect {
		p.onward.ServeHTTP(w, r)
		return
	}
	server, err := p.dial(ctx, "tcp", target.String())
	if err != nil {
		p.fail(w, r, err)
		return
	}
	defer server.Close()
	tunnel(ctx, w, server)
}

// target returns the host of a request, with its port.
func target(r *http.Request) (hostrule.Pattern, error) {
	switch {
	case r.Method == http.MethodConnect:
		return hostrule.Host(r.RequestURI, 0)
	case !r.URL.IsAbs():
		return hostrule.Pattern{}, errors.New("this is a proxy: ask it for the whole address, such as http://example.com/")
	case r.URL.Scheme != "http":
		return hostrule.Pattern{}, fmt.Errorf("the proxy does not speak %s; use http, or https by CONNECT", r.URL.Scheme)
	}
	return hostrule.Host(r.URL.Host, 80)
}

// fail answers a request that the proxy did not carry out, and remembers a refusal.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		p.remember(protocol.RefusedHost{Host: refused.host, Reason: refused.reason, AtMs: time.Now().UnixMilli(), Hosts: slices.Compact(refused.allow)})
		http.Error(w, refused.Error(), http.StatusForbidden)
		return
	}
	if found, ok := errors.AsType[*net.DNSError](err); ok {
		http.Error(w, fmt.Sprintf("lashd: the name %s was not found: %s", found.Name, found.Err), http.StatusBadGateway)
		return
	}
	http.Error(w, "lashd: "+err.Error(), http.StatusBadGateway)
}

// remember adds a refusal, once for each host.
func (p *Proxy) remember(h protocol.RefusedHost) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.last[h.Host]; !known {
		if len(p.refused) == maxRefused {
			return
		}
		p.refused = append(p.refused, h)
	}
	p.last[h.Host] = h.AtMs
}
