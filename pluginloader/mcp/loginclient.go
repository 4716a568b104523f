package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Limits of the requests of a login.
const (
	loginTime = 15 * time.Second // per request
	maxLogin  = 1 << 20          // bytes of a response
)

// loginClient returns the HTTP client for logins to a server. It talks to the authorization servers
// and never sends the headers of the server's configuration.
func loginClient(server string) *http.Client {
	return &http.Client{Timeout: loginTime, Transport: &loginWire{server, http.DefaultTransport.(*http.Transport).Clone()}, CheckRedirect: redirected}
}

// redirected rejects redirects of requests with a code, a token or a secret, and redirects of others to another host.
func redirected(req *http.Request, via []*http.Request) error {
	if first := via[0]; first.Method != http.MethodGet || req.URL.Host != first.URL.Host || len(via) > 3 {
		return fmt.Errorf("the login is redirected from %s to %s, which lashd does not follow", first.URL.Host, req.URL.Host)
	}
	return nil
}

// loginWire rejects requests that others could read, and responses that are too long.
type loginWire struct {
	server string
	base   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (w *loginWire) RoundTrip(req *http.Request) (*http.Response, error) {
	if !trusted(req.URL, w.server) {
		return nil, errors.New("the login requires a request without https")
	}
	resp, err := w.base.RoundTrip(req)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, left: maxLogin, release: func() {}}
	}
	return resp, err
}

// trusted reports whether an address may be used for a login to a server: https, or this machine if
// the server runs there too.
func trusted(at *url.URL, server string) bool {
	if at.Scheme == "https" {
		return true
	}
	s, err := url.Parse(server)
	return err == nil && at.Scheme == "http" && local(at.Hostname()) && local(s.Hostname())
}

// local reports whether a host name is this machine.
func local(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
