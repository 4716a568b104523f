package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// loginMark is in each secret of guarded.
const loginMark = "canary5e11ab90"

// guarded is an MCP server that requires a login, with its authorization server. Each access token is good for one process of the
// client: expire makes the newest one invalid.
type guarded struct {
	*httptest.Server
	mcp http.Handler

	mu      sync.Mutex
	issued  int
	access  string // the valid access token
	refresh string // the valid refresh token
	grants  []string
}

func newGuarded(t *testing.T) *guarded {
	server := sdk.NewServer(&sdk.Implementation{Name: "guarded", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "hello"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello"}}}, nil, nil
	})
	g := &guarded{mcp: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"resource": g.URL + "/mcp", "authorization_servers": []string{g.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": g.URL, "authorization_endpoint": g.URL + "/authorize", "token_endpoint": g.URL + "/token", "registration_endpoint": g.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			URIs []string `json:"redirect_uris"`
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"client_id": "client-" + loginMark, "redirect_uris": asked.URIs, "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?code=c&state="+q.Get("state"), http.StatusFound)
	})
	mux.HandleFunc("/token", g.token)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		valid := g.access != "" && r.Header.Get("Authorization") == "Bearer "+g.access
		g.mu.Unlock()
		if !valid {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		g.mcp.ServeHTTP(w, r)
	})
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	return g
}

// token gives new tokens for a code or for the valid refresh token, which it then replaces.
func (g *guarded) token(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	grant := r.PostFormValue("grant_type")
	g.grants = append(g.grants, grant)
	w.Header().Set("Content-Type", "application/json")
	if grant == "refresh_token" && r.PostFormValue("refresh_token") != g.refresh || grant == "authorization_code" && r.PostFormValue("code_verifier") == "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, r.PostFormValue("refresh_token"))
		return
	}
	g.issued++
	g.access, g.refresh = fmt.Sprintf("access-%s-%d", loginMark, g.issued), fmt.Sprintf("refresh-%s-%d", loginMark, g.issued)
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": g.access, "refresh_token": g.refresh, "token_type": "Bearer", "expires_in": 3600})
}

// revoke makes tokens invalid.
func (g *guarded) revoke(refresh bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access = ""; refresh {
		g.refresh = ""
	}
}

// authorizePage finds the address that a person opens to log in.
var authorizePage = regexp.MustCompile(`https?://\S+/authorize\?\S+`)

// mcpLogin runs lash mcp login and gives its address to browse, which returns what the person pastes.
func (p *place) mcpLogin(browse func(string) string, args ...string) result {
	p.t.Helper()
	var out bytes.Buffer
	cmd := p.command(append([]string{"mcp", "login"}, args...)...)
	cmd.Stdout = &out
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	shown, err := cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	var errs strings.Builder
	lines := bufio.NewReader(shown)
	for at := ""; at == ""; at = authorizePage.FindString(errs.String()) {
		line, err := lines.ReadString('\n')
		errs.WriteString(line)
		if err != nil {
			break
		}
	}
	if at := authorizePage.FindString(errs.String()); at != "" {
		if pasted := browse(at); pasted != "" {
			_, _ = in.Write([]byte(pasted + "\n")) // a process that ended says why
		}
	}
	defer in.Close()
	rest, _ := lines.ReadString(0)
	errs.WriteString(rest)
	return result{code: exitCode(p.t, cmd.Wait()), out: out.String(), err: errs.String()}
}

// serverState returns the server docs as plugin/list has it.
func (p *place) serverState() (s protocol.PluginServer) {
	var list protocol.PluginListResult
	if err := json.Unmarshal([]byte(p.want(0, "", "", "call", "plugin/list").out), &list); err != nil {
		p.t.Fatal(err)
	}
	for _, info := range list.Data {
		if len(info.Servers) == 1 {
			s = info.Servers[0]
		}
	}
	return s
}

// until waits until the server docs is as is wants.
func (p *place) until(what string, is func(protocol.PluginServer) bool) {
	p.t.Helper()
	wait.Until(p.t, what, func() bool { return is(p.serverState()) })
}

// hidden fails if a secret of a login lies in a file of the place other than the key file of logins.
func (p *place) hidden() {
	p.t.Helper()
	keys := filepath.Join(p.home, "mcp-logins", "keys.json")
	err := filepath.WalkDir(filepath.Dir(p.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == keys {
			return nil
		}
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte(loginMark)) {
			p.t.Errorf("part13/6 a secret of the login is in %s", path)
		}
		return nil
	})
	if info, statErr := os.Stat(keys); err != nil || statErr != nil || info.Mode().Perm() != 0o600 {
		p.t.Errorf("part13/6 %s: %v, %v", keys, info, statErr)
	}
}

func TestMCPLogin(t *testing.T) {
	g := newGuarded(t)
	p := newPlace(t)
	p.environ = append(p.environ, "LASHD_KEYRING=off", "LASHD_LOG=debug")
	p.write("config.toml", "script = \"script.json\"\ntrace = true\n")
	p.want(0, "Added docs to ", "", "mcp", "add", "docs", g.URL+"/mcp")
	p.until("the server requires a login", func(s protocol.PluginServer) bool { return s.Login == protocol.LoginNeeded && s.Tools == 0 })
	p.want(0, "There was no login to docs.", "", "mcp", "logout", "docs")
	p.want(console.ExitFailed, "", "there is no such MCP server: nothing", "mcp", "login", "nothing")

	t.Run("part13/6 the browser reports to lash, and the server works after a restart of the daemon", func(t *testing.T) {
		page := ""
		r := p.mcpLogin(func(at string) string {
			back := p.redirected(at)
			if resp, err := http.Get(strings.Replace(back, "state=", "state=x", 1)); err != nil || resp.StatusCode != http.StatusNotFound {
				t.Errorf("a request with another state is answered %v, %v", resp, err)
			}
			resp, err := http.Get(back)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := bufio.NewReader(resp.Body).ReadString('\n')
			page = text
			return ""
		}, "docs")
		if r.code != 0 || r.out != "Logged in to docs.\n" || !strings.HasPrefix(page, "lash has received the login") {
			t.Fatalf("the login ended with %+v, and the page %q", r, page)
		}
		works := func(s protocol.PluginServer) bool {
			return s.Login == protocol.LoggedIn && s.Tools == 1 && s.State == "ready"
		}
		p.until("the server works", works)
		p.kill()
		p.want(0, "", "", "call", "plugin/reload")
		p.until("the server works after a restart", func(s protocol.PluginServer) bool { return s.Tools == 1 })
		p.hidden()
	})

	t.Run("part13/6 tokens that the server refuses are renewed once, without a person", func(t *testing.T) {
		g.revoke(false)
		p.kill()
		p.calls(t, "hello")
		if got := strings.Join(g.grants, " "); got != "authorization_code refresh_token" {
			t.Errorf("the authorization server was asked for %s", got)
		}
		p.hidden()
	})

	t.Run("part13/6 a login that the authorization server has ended needs a person, who pastes the address", func(t *testing.T) {
		g.revoke(true)
		p.kill()
		p.want(0, "", "", "call", "plugin/list")
		r := p.mcpLogin(func(at string) string { return p.redirected(at) }, "--paste", "docs")
		if r.code != 0 || r.out != "Logged in to docs.\n" {
			t.Fatalf("the login ended with %+v", r)
		}
		p.calls(t, "hello")
		r = p.mcpLogin(func(string) string { return "http://127.0.0.1:999/callback?code=c&state=other" }, "--paste", "docs")
		if r.code == 0 || !strings.Contains(r.err, "belongs to another login") {
			t.Errorf("an address of another login ended with %+v", r)
		}
		p.hidden()
	})

	t.Run("part13/6 lash mcp logout deletes the tokens", func(t *testing.T) {
		p.want(0, "Logged out of docs.", "", "mcp", "logout", "docs")
		p.until("the server requires a login again", func(s protocol.PluginServer) bool { return s.Login == protocol.LoginNeeded })
		if data, err := os.ReadFile(filepath.Join(p.home, "mcp-logins", "keys.json")); err != nil || strings.Contains(string(data), loginMark) {
			t.Errorf("the file has %s, %v", data, err)
		}
	})
}

// calls calls the tool of the server in a new session and expects its answer.
func (p *place) calls(t *testing.T, answer string) {
	t.Helper()
	var s protocol.SessionNewResult
	made := p.want(0, "", "", "call", "session/new", `{"cwd":"`+p.work+`"}`).out
	if err := json.Unmarshal([]byte(made), &s); err != nil {
		t.Fatalf("%s: %v", made, err)
	}
	called := p.want(0, "", "", "call", "tool/call", `{"sessionId":"`+string(s.SessionID)+`","name":"mcp__docs__hello","args":{}}`).out
	if !strings.Contains(called, answer) {
		t.Errorf("the call returned %s", called)
	}
}
