package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/rpc/protocol"
)

// The canaries of a login to an MCP server.
const (
	accessCanary, refreshCanary, secretCanary, renewedCanary = 31, 32, 33, 34
)

// guard is an MCP server that requires a login, and its authorization server. All tokens are canaries. It repeats the headers and the form of each request
// that it refuses, with the tokens in them.
type guard struct {
	*httptest.Server
	parrot *parrot
	mcp    http.Handler
	valid  atomic.Int32 // the canary that it accepts; 0: none
	broken atomic.Bool  // it answers each request with an error
}

func newGuard(c *planted) *guard {
	s := mcp.NewServer(&mcp.Implementation{Name: "guarded", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	g := &guard{parrot: c.parrot, mcp: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)}
	mux := http.NewServeMux()
	answer := func(path string, status int, value func(at string) string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, value("http://"+r.Host))
		})
	}
	answer("/.well-known/oauth-protected-resource/mcp", http.StatusOK, func(at string) string {
		return mustArgs(map[string]any{"resource": at + "/mcp", "authorization_servers": []string{at}})
	})
	answer("/.well-known/oauth-authorization-server", http.StatusOK, func(at string) string {
		return mustArgs(map[string]any{
			"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "registration_endpoint": at + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_post"},
		})
	})
	answer("/register", http.StatusCreated, func(string) string {
		return mustArgs(map[string]any{"client_id": "lashd", "client_secret": canary(secretCanary), "redirect_uris": []string{"http://127.0.0.1:999/callback"}, "token_endpoint_auth_method": "client_secret_post"})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?code=c&state="+q.Get("state"), http.StatusFound)
	})
	mux.HandleFunc("/token", g.token)
	mux.HandleFunc("/mcp", g.serve)
	g.Server = httptest.NewServer(mux)
	c.t.Cleanup(func() { g.CloseClientConnections(); g.Close() })
	return g
}

// said returns what a request has, and notes the canaries in it.
func (g *guard) said(r *http.Request) string {
	said := fmt.Sprint(r.Header, r.PostForm)
	for _, n := range found(said) {
		g.parrot.seen[n].Store(true)
	}
	return said
}

// token gives tokens for a code, and another access token for the refresh token.
func (g *guard) token(w http.ResponseWriter, r *http.Request) {
	next := int32(accessCanary)
	if r.PostFormValue("grant_type") == "refresh_token" {
		next = renewedCanary
	}
	said := g.said(r)
	w.Header().Set("Content-Type", "application/json")
	if g.broken.Load() {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, mustArgs(map[string]any{"error": "server_error", "error_description": said}))
		return
	}
	g.valid.Store(next)
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": canary(int(next)), "refresh_token": canary(refreshCanary), "token_type": "Bearer", "expires_in": 3600})
}

// serve is the MCP server.
func (g *guard) serve(w http.ResponseWriter, r *http.Request) {
	said := g.said(r)
	switch {
	case g.broken.Load() && g.valid.Load() != 0:
		http.Error(w, "broken: "+said, http.StatusInternalServerError)
	case r.Header.Get("Authorization") != "Bearer "+canary(int(g.valid.Load())):
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/.well-known/oauth-protected-resource/mcp"`)
		http.Error(w, "refused: "+said, http.StatusUnauthorized)
	default:
		g.mcp.ServeHTTP(w, r)
	}
}

// signsIn logs in to the guarded MCP server, has the tokens renewed, and lets the servers fail.
func (c *planted) signsIn() {
	c.t.Helper()
	server := protocol.MCPServerParams{Server: "guarded"}
	begun := ask[protocol.MCPLoginResult](c.peer, "mcp/login", protocol.MCPLoginParams{MCPServerParams: server})
	ask[protocol.Empty](c.peer, "mcp/finishLogin", protocol.MCPFinishLoginParams{LoginID: begun.LoginID, Address: browse(c.t, begun.URL)})
	id := c.peer.session(c.home)
	c.peer.attach(id, 0)
	c.peer.provides(id, "mcp__guarded__hello")
	call := func() string {
		r := ask[protocol.ToolCallResult](c.peer, "tool/call", protocol.ToolCallParams{SessionID: id, Name: "mcp__guarded__hello"})
		return r.Output.Text
	}
	if got := call(); got != "hello" {
		c.t.Errorf("after the login, a call returns %q", got)
	}
	c.guard.broken.Store(true)
	c.guard.valid.Store(0)
	c.clean("the result of a server whose authorization server is broken", call())
	c.guard.broken.Store(false)
	c.guard.valid.Store(renewedCanary) // the first token is refused, and lashd renews it
	if got := call(); got != "hello" {
		c.t.Errorf("after the renewal, a call returns %q", got)
	}
	if kept := fmt.Sprint(c.ring.Secrets()); !strings.Contains(kept, canary(renewedCanary)) {
		c.t.Error("the keyring lacks the login")
	}
	c.guard.broken.Store(true)
	c.clean("the result of a broken server", call())
	c.clean("the list of plugins", mustArgs(ask[protocol.PluginListResult](c.peer, "plugin/list", protocol.Empty{})))
}
