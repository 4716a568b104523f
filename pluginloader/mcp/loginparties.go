package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"lashd/rpc/protocol"
)

// metadata is the part of the metadata of an authorization server that a person sees (RFC 8414).
type metadata struct {
	Issuer        string `json:"issuer"`
	TokenEndpoint string `json:"token_endpoint"`
	Resource      string `json:"resource"` // only metadata of a resource has it
}

// witness is the HTTP transport of one login. The library finds the authorization server, and witness notes what it finds. A person decides
// by the hosts that parties returns, so witness sends the code only to that host. It is safe for concurrent use.
type witness struct {
	base http.RoundTripper

	mu    sync.Mutex
	found metadata // the newest
	shown string   // host that may get the code; empty: parties was not called
}

// errUnseen rejects a request with a code for a host that no person has seen.
var errUnseen = errors.New("the login requires a request to a host that was not shown before the login")

// RoundTrip implements http.RoundTripper.
func (w *witness) RoundTrip(req *http.Request) (*http.Response, error) {
	if !w.may(req) {
		return nil, errUnseen
	}
	resp, err := w.base.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body) // the transport below limits it
	if err != nil {
		return nil, err
	}
	w.note(req.URL, data)
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// may reports whether a request may be sent.
func (w *witness) may(req *http.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return req.Method != http.MethodPost || w.shown == "" || strings.EqualFold(req.URL.Host, w.shown)
}

// note keeps an answer that is metadata of the authorization server at that host.
func (w *witness) note(at *url.URL, data []byte) {
	var m metadata
	if json.Unmarshal(data, &m) != nil || m.Resource != "" {
		return
	}
	if issuer, err := url.Parse(m.Issuer); err != nil || !strings.EqualFold(issuer.Host, at.Host) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = m
}

// parties returns what a person sees before the login at page. An authorization server without metadata is at the host of the page.
func (w *witness) parties(server, page *url.URL) protocol.LoginParties {
	w.mu.Lock()
	defer w.mu.Unlock()
	issuer, err := url.Parse(w.found.Issuer)
	token, failed := url.Parse(w.found.TokenEndpoint)
	if cmp.Or(err, failed) != nil || issuer.Host == "" || token.Host == "" {
		issuer, token = &url.URL{Scheme: page.Scheme, Host: page.Host}, page
	}
	w.shown = token.Host
	p := protocol.LoginParties{
		Server: hostOf(server), Issuer: cut(issuer.Scheme+"://"+hostOf(issuer)+strings.TrimSuffix(issuer.EscapedPath(), "/"), maxMessage),
		Authorization: hostOf(page), Token: hostOf(token),
	}
	p.Warning = warning(p, hostOf(issuer))
	return p
}

// hostOf returns the host of an address for people. It shows letters outside ASCII by number, because they can look like others.
func hostOf(at *url.URL) string {
	return strings.Trim(strconv.QuoteToASCII(strings.ToLower(at.Host)), `"`)
}

// warning returns what a person has to notice; empty: the MCP server issues its own tokens, all at one host.
func warning(p protocol.LoginParties, issuer string) string {
	var all []string
	if issuer != p.Server {
		all = append(all, fmt.Sprintf("The MCP server at %s does not issue its own tokens: it names the authorization server at %s. Log in only if you expect that.", p.Server, issuer))
	}
	if p.Authorization != issuer || p.Token != issuer {
		all = append(all, fmt.Sprintf("The login page is at %s, and %s gets the result of the login.", p.Authorization, p.Token))
	}
	return strings.Join(all, " ")
}
