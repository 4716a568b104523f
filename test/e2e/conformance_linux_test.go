package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// scenario is a scenario of MCP's conformance tests.
type scenario struct {
	name   string
	tools  map[string]string // arguments of the tools to call
	fails  string            // the part that must fail: authorize, or a tool
	client []string          // options of lash mcp add for a server with a client that is registered; otherwise a session brings the server
}

// login receives the redirect after a login.
var login = map[string]string{"test-tool": `{}`}

var scenarios = []scenario{
	{name: "initialize"},
	{name: "tools_call", tools: map[string]string{"add_numbers": `{"a":5,"b":3}`}},
	{name: "elicitation-sep1034-client-defaults", tools: map[string]string{"test_client_elicitation_defaults": `{}`}},
	{name: "sse-retry", tools: map[string]string{"test_reconnection": `{}`}},
	{name: "auth/metadata-default", tools: login},
	{name: "auth/metadata-var1", tools: login},
	{name: "auth/metadata-var2", tools: login},
	{name: "auth/metadata-var3", tools: login},
	{name: "auth/scope-from-www-authenticate", tools: login},
	{name: "auth/scope-from-scopes-supported", tools: login},
	{name: "auth/scope-omitted-when-undefined", tools: login},
	{name: "auth/scope-step-up", tools: login},
	{name: "auth/scope-retry-limit", tools: login, fails: "authorize"},
	{name: "auth/token-endpoint-auth-basic", tools: login},
	{name: "auth/token-endpoint-auth-post", tools: login},
	{name: "auth/token-endpoint-auth-none", tools: login},
	{name: "auth/2025-03-26-oauth-endpoint-fallback", tools: login},
	{name: "auth/resource-mismatch", tools: login, fails: "authorize"},
	{name: "auth/offline-access-scope", tools: login},
	{name: "auth/offline-access-not-supported", tools: login},
	{name: "auth/pre-registration", tools: login, client: []string{"--client-id", "pre-registered-client", "--client-secret", "pre-registered-secret"}}, // last, because the daemon forgets the server a moment later
}

// inapplicable are the other client scenarios, with the reason why lashd is not tested with them.
var inapplicable = map[string]string{
	"auth/basic-cimd": "lashd has no page of its own that describes it as a client; it registers, which the scenario warns of",
	"auth/2025-03-26-oauth-metadata-backcompat": "its metadata name another issuer than they were asked of, which RFC 8414, section 3.3, says must be refused",
	"auth/client-credentials-jwt":               machines,
	"auth/client-credentials-basic":             machines,
	"auth/cross-app-access-complete-flow":       machines,
}

const machines = "an extension, with which programs log in that no person uses"

// TestMCPConformance runs the client scenarios of the official conformance tests against the daemon.
func TestMCPConformance(t *testing.T) {
	runner := npmFile(t, "@modelcontextprotocol/conformance/dist/index.js")
	w := newWorld(t, "allow")
	w.has("ts") // the runner needs a newer node than most systems have
	w.serve()
	p := w.dial("")
	t.Run("outside/20 every scenario is run or has a reason", func(t *testing.T) {
		var want, got []string
		for _, s := range scenarios {
			want = append(want, s.name)
		}
		want = slices.AppendSeq(want, maps.Keys(inapplicable))
		list, err := w.node(t.Context(), runner, "list", "--client")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(list) {
			if name, ok := strings.CutPrefix(line, "  - "); ok {
				got = append(got, strings.Fields(name)[0])
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("the list of scenarios has changed (-known +listed):\n%s", diff)
		}
	})
	for _, s := range scenarios {
		t.Run("outside/20 conformance: "+s.name, func(t *testing.T) {
			out, err := w.conforms(t, runner, s, p)
			for n := 0; n < 5 && strings.Contains(out, "very late"); n++ { // on a busy machine the runner may find the client late
				out, err = w.conforms(t, runner, s, p)
			}
			if err != nil || !strings.Contains(out, "OVERALL: PASSED") {
				t.Errorf("the runner failed: %v:\n%s", err, out)
			}
		})
	}
}

// node runs a program with the node that the tests use.
func (w *world) node(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `exec node "$@"`, "node"}, args...)...)
	cmd.Env, cmd.WaitDelay = w.command().Env, patience
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// conformance connects the runner and the client of a scenario by pipes: one carries the server's
// address, and one a line once the daemon has used the server.
type conformance struct{ dir, server, over, client string }

func newConformance(t *testing.T) conformance {
	t.Helper()
	dir := t.TempDir()
	r := conformance{dir, filepath.Join(dir, "server"), filepath.Join(dir, "over"), filepath.Join(dir, "client")}
	script := "#!/bin/sh\nprintf '%s\\n' \"$1\" >" + r.server + "\nread -r line <" + r.over + "\n"
	err := cmp.Or(syscall.Mkfifo(r.server, 0o600), syscall.Mkfifo(r.over, 0o600), os.WriteFile(r.client, []byte(script), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// conforms has the runner start its server and the daemon use it, while the runner waits for the
// client to end.
func (w *world) conforms(t *testing.T, runner string, s scenario, p *peer) (out string, err error) {
	r := newConformance(t)
	over, err := os.OpenFile(r.over, os.O_RDWR, 0) // keeps the other end from blocking
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	var running sync.WaitGroup
	running.Go(func() {
		out, err = w.node(t.Context(), runner, "client", "--command", r.client, "--scenario", s.name, "--timeout", "60000")
		if f, err := os.OpenFile(r.server, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close() // the runner ended without printing the server's address
		}
	})
	told, readErr := os.ReadFile(r.server)
	if url := strings.TrimSpace(string(told)); url != "" {
		w.uses(t, p, url, s)
	}
	_, writeErr := over.WriteString("\n")
	running.Wait()
	return out, cmp.Or(err, readErr, writeErr)
}

// uses has a session use the server of a scenario, after a login if the server asks for one.
func (w *world) uses(t *testing.T, p *peer, url string, s scenario) {
	servers := protocol.MCPServers{"c": {URL: url}}
	if len(s.client) > 0 {
		w.lash(append(append([]string{"mcp", "add"}, s.client...), "c", url)...)
		defer w.lash("mcp", "remove", "c")
		servers = nil
	}
	id := p.brings(w.home, servers)
	defer ask[protocol.HeadResult](p, "session/delete", protocol.SessionMutationParams{SessionID: id}) // the runner waits until its server is disconnected
	if strings.HasPrefix(s.name, "auth/") {
		p.provides(id, "mcp__c__authorize")
		if out := p.answering(t, id, "mcp__c__authorize", `{}`); (out.Status == protocol.OutputSuccess) == (s.fails == "authorize") {
			t.Errorf("the login: %+v", out)
			return
		} else if s.fails == "authorize" {
			return
		}
	}
	for name, args := range s.tools {
		p.provides(id, "mcp__c__"+name)
		if out := p.answering(t, id, "mcp__c__"+name, args); (out.Status == protocol.OutputSuccess) == (s.fails == name) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// answering has the model call a tool and answers the questions that it causes: forms with no values,
// and logins like a browser.
func (p *peer) answering(t *testing.T, id protocol.SessionID, tool, args string) protocol.ToolOutput {
	turn := p.start(id, fakemodel.ToolMarker(tool, args)).TurnID
	for answered := map[protocol.DecisionID]bool{}; ; {
		var d *protocol.Decision
		p.until("the call asks or ends", func(all []told) bool {
			d = nil
			for _, e := range all {
				if e.TurnID == turn && opened(e.Event) && !answered[e.Decision.ID] {
					d = e.Decision
				}
			}
			return d != nil || slices.ContainsFunc(all, func(e told) bool { return e.TurnID == turn && e.Type == protocol.EventTurnCompleted })
		})
		if d == nil {
			return called(t, p.wait(turn), tool)
		}
		answered[d.ID] = true
		value := `{}`
		if strings.Contains(string(d.Form), "address") {
			value = mustArgs(map[string]string{"address": browse(t, d.Prompt[strings.LastIndex(d.Prompt, "\n")+1:])})
		}
		ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{
			DecisionID: d.ID, Choice: protocol.ChooseAnswer, ArgsHash: d.ArgsHash, Value: json.RawMessage(value),
		})
	}
}

// browse returns the address to which an address redirects.
func browse(t *testing.T, address string) string {
	t.Helper()
	r, err := http.DefaultTransport.RoundTrip(must(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.Header.Get("Location")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
