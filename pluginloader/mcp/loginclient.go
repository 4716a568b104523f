package mcp

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

const (
	loginTime = 15 * time.Second // for one request of a login
	maxLogin  = 1 << 20          // bytes of a response
)

// loginClient makes the requests of logins to a server: to the servers that say how to log in, and that give tokens. Headers of the
// server's configuration are not sent.
func loginClient(server string) *http.Client {
	return &http.Client{Timeout: loginTime, Transport: &loginWire{server, http.DefaultTransport.(*http.Transport).Clone()}}
}

// loginWire refuses what could be read on its way, and responses that are too long.
type loginWire struct {
	server string
	base   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (w *loginWire) RoundTrip(req *http.Request) (*http.Response, error) {
	if !trusted(req.URL, w.server) {
		return nil, errors.New("the login needs a request to an address that is not https")
	}
	resp, err := w.base.RoundTrip(req)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, left: maxLogin, release: func() {}}
	}
	return resp, err
}

// trusted tells whether an address may be part of a login to a server: one of https, or of this machine if the server is there, too.
func trusted(at *url.URL, server string) bool {
	if at.Scheme == "https" {
		return true
	}
	s, err := url.Parse(server)
	return err == nil && at.Scheme == "http" && local(at.Hostname()) && local(s.Hostname())
}

func local(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
