package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

	issuer string // of the metadata; empty: the server itself
	tokens string // its host for tokens; empty: that of the issuer
	iss    string // the issuer that it sends back, as its metadata then says; "none": it sends none

	mu      sync.Mutex
	moved   string // where it redirects requests for tokens; empty: it answers them
	wanted  []string
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
		answer(w, map[string]any{"resource": g.URL + "/mcp", "authorization_servers": []string{cmp.Or(g.issuer, g.URL)}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		at := "http://" + r.Host
		answer(w, map[string]any{
			"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": cmp.Or(g.tokens, at) + "/token", "registration_endpoint": at + "/register",
			"authorization_response_iss_parameter_supported": g.iss != "",
			"response_types_supported":                       []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
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
		back := q.Get("redirect_uri") + "?code=c&state=" + q.Get("state")
		if g.iss != "" && g.iss != "none" {
			back += "&iss=" + url.QueryEscape(g.iss)
		}
		http.Redirect(w, r, back, http.StatusFound)
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
	if g.moved != "" {
		http.Redirect(w, r, g.moved, http.StatusTemporaryRedirect)
		return
	}
	grant := r.PostFormValue("grant_type")
	g.wanted = append(g.wanted, r.PostFormValue("resource"))
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
	keys := filepath.Join(p.home, "mcp-logins.json")
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
	p.want(console.ExitFailed, "", "there is no MCP server nothing; lash mcp lists the servers", "mcp", "login", "nothing")

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
		if want := []string{g.URL + "/mcp", g.URL + "/mcp"}; !slices.Equal(g.wanted, want) {
			t.Errorf("the tokens are for the resources %q, want %q", g.wanted, want)
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
		if data, err := os.ReadFile(filepath.Join(p.home, "mcp-logins.json")); err != nil || strings.Contains(string(data), loginMark) {
			t.Errorf("the file has %s, %v", data, err)
		}
	})
}

// loginPlace is a place whose configuration has the server docs.
func loginPlace(t *testing.T, g *guarded) *place {
	p := newPlace(t)
	p.environ = append(p.environ, "LASHD_KEYRING=off")
	p.write("config.toml", "script = \"script.json\"\n")
	p.want(0, "Added docs to ", "", "mcp", "add", "docs", g.URL+"/mcp")
	p.until("the server requires a login", func(s protocol.PluginServer) bool { return s.Login == protocol.LoginNeeded })
	return p
}

func TestMCPLoginParties(t *testing.T) {
	for name, c := range map[string]struct {
		foreign, elsewhere bool
		warning            string
	}{
		"the server itself":                {},
		"another server":                   {foreign: true, warning: "\n\nWarning: The MCP server at SERVER does not issue its own tokens: it names the authorization server at ISSUER. Log in only if you expect that.\n"},
		"a server whose tokens are others": {elsewhere: true, warning: "\n\nWarning: The login page is at ISSUER, and TOKENS gets the result of the login.\n"},
	} {
		t.Run("part13/6 before the address, a login shows who takes part: the authorization server is "+name, func(t *testing.T) {
			g := newGuarded(t)
			second := httptest.NewServer(g.Config.Handler)
			defer second.Close()
			issuer, tokens := g.URL, g.URL
			if c.foreign {
				g.issuer, issuer, tokens = second.URL, second.URL, second.URL
			}
			if c.elsewhere {
				g.tokens, tokens = second.URL, second.URL
			}
			p := loginPlace(t, g)
			host := func(at string) string { return strings.TrimPrefix(at, "http://") }
			r := p.mcpLogin(p.redirected, "--paste", "docs")
			want := "MCP server:            " + host(g.URL) + "\nAuthorization server:  " + issuer + "\nLogin page:            " + host(issuer) + "\nTokens from:           " + host(tokens)
			want += strings.NewReplacer("SERVER", host(g.URL), "ISSUER", host(issuer), "TOKENS", host(tokens)).Replace(c.warning)
			if shown, _, _ := strings.Cut(r.err, "Open this address"); strings.TrimSpace(shown) != strings.TrimSpace(want) || r.code != 0 {
				t.Errorf("the login ended with %d and shows\n%s\nwant\n%s", r.code, r.err, want)
			}
		})
	}
	for iss, want := range map[string]string{"": "", "none": "none was received", "http://other.test": "does not match expected issuer"} {
		t.Run("part13/6 an authorization server that says so must name itself in the answer; it sends "+cmp.Or(iss, "its address"), func(t *testing.T) {
			g := newGuarded(t)
			g.iss = cmp.Or(iss, g.URL)
			r := loginPlace(t, g).mcpLogin((&place{t: t}).redirected, "--paste", "docs")
			if (r.code == 0) != (want == "") || !strings.Contains(r.err, want) || want != "" && len(g.grants) > 0 {
				t.Errorf("the login ended with %+v after requests for %q; want %q", r, g.grants, want)
			}
		})
	}
	t.Run("part13/6 a request for tokens follows no redirect, which would give away the code", func(t *testing.T) {
		g := newGuarded(t)
		got := make(chan string, 9)
		thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.PostFormValue("code") }))
		defer thief.Close()
		g.moved = thief.URL
		r := loginPlace(t, g).mcpLogin((&place{t: t}).redirected, "--paste", "docs")
		if r.code == 0 || !strings.Contains(r.err, "which lashd does not follow") || len(got) > 0 {
			t.Errorf("the login ended with %+v; the other server got %d requests", r, len(got))
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
