package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
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

// scenario is a scenario of the conformance tests of MCP.
type scenario struct {
	name  string
	tools map[string]string // that are called, with their arguments
}

var scenarios = []scenario{
	{"initialize", nil},
	{"tools_call", map[string]string{"add_numbers": `{"a":5,"b":3}`}},
	{"elicitation-sep1034-client-defaults", map[string]string{"test_client_elicitation_defaults": `{}`}},
	{"sse-retry", map[string]string{"test_reconnection": `{}`}},
}

// inapplicable are the other scenarios for clients, and why lashd is not tested with them.
var inapplicable = map[string]string{
	"auth/metadata-default":                     noLogin,
	"auth/metadata-var1":                        noLogin,
	"auth/metadata-var2":                        noLogin,
	"auth/metadata-var3":                        noLogin,
	"auth/basic-cimd":                           noLogin,
	"auth/scope-from-www-authenticate":          noLogin,
	"auth/scope-from-scopes-supported":          noLogin,
	"auth/scope-omitted-when-undefined":         noLogin,
	"auth/scope-step-up":                        noLogin,
	"auth/scope-retry-limit":                    noLogin,
	"auth/token-endpoint-auth-basic":            noLogin,
	"auth/token-endpoint-auth-post":             noLogin,
	"auth/token-endpoint-auth-none":             noLogin,
	"auth/pre-registration":                     noLogin,
	"auth/2025-03-26-oauth-metadata-backcompat": noLogin,
	"auth/2025-03-26-oauth-endpoint-fallback":   noLogin,
	"auth/resource-mismatch":                    noLogin,
	"auth/offline-access-scope":                 noLogin,
	"auth/offline-access-not-supported":         noLogin,
	"auth/client-credentials-jwt":               noLogin,
	"auth/client-credentials-basic":             noLogin,
	"auth/cross-app-access-complete-flow":       noLogin,
}

const noLogin = "lashd does not log in to MCP servers by OAuth: a server that wants a token gets it in a header that a person has configured"

// TestMCPConformance runs the scenarios for clients of the official conformance tests against the daemon.
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
			t.Errorf("the scenarios are other ones (-known +listed):\n%s", diff)
		}
	})
	for _, s := range scenarios {
		t.Run("outside/20 conformance: "+s.name, func(t *testing.T) {
			out, err := w.conforms(t, runner, s, p)
			for n := 0; n < 5 && strings.Contains(out, "very late"); n++ { // a machine that has much to do is no slow client
				out, err = w.conforms(t, runner, s, p)
			}
			if err != nil || !strings.Contains(out, "OVERALL: PASSED") {
				t.Errorf("the runner says %v:\n%s", err, out)
			}
		})
	}
}

// node runs a program with the node that the tests have.
func (w *world) node(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `exec node "$@"`, "node"}, args...)...)
	cmd.Env, cmd.WaitDelay = w.command().Env, patience
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// conformance is what the runner and the client of a scenario tell each other: pipes, one with the address of the server, and one with a line once
// the daemon has used it.
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

// conforms has the runner start its server, and the daemon use that while the runner waits for the client to end.
func (w *world) conforms(t *testing.T, runner string, s scenario, p *peer) (out string, err error) {
	r := newConformance(t)
	over, err := os.OpenFile(r.over, os.O_RDWR, 0) // so that nobody waits for the other end
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	var running sync.WaitGroup
	running.Go(func() {
		out, err = w.node(t.Context(), runner, "client", "--command", r.client, "--scenario", s.name, "--timeout", "60000")
		if f, err := os.OpenFile(r.server, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close() // it has not told where the server is, and never will
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

// uses has a session use the server of a scenario.
func (w *world) uses(t *testing.T, p *peer, url string, s scenario) {
	id := p.brings(w.home, protocol.MCPServers{"c": {URL: url}})
	defer ask[protocol.HeadResult](p, "session/delete", protocol.SessionMutationParams{SessionID: id}) // the runner waits until its server is left
	for name, args := range s.tools {
		p.provides(id, "mcp__c__"+name)
		turn := p.start(id, fakemodel.ToolMarker("mcp__c__"+name, args)).TurnID
		if strings.HasPrefix(s.name, "elicitation") {
			d := p.event("the question", func(e protocol.Event) bool { return opened(e) && e.TurnID == turn }).Decision
			ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{
				DecisionID: d.ID, Choice: protocol.ChooseAnswer, ArgsHash: d.ArgsHash, Value: json.RawMessage(`{}`),
			})
		}
		if out := called(t, p.wait(turn), "mcp__c__"+name); out.Status != protocol.OutputSuccess {
			t.Errorf("%s: %+v", name, out)
		}
	}
}
