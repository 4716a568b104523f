package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/audit"
	"lashd/engine/builtin/builtintest"
	"lashd/engine/tool"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
)

// webServer starts a server that says "hello", and returns its host with the port.
func webServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// result calls the tool sh as a session in the mode workspace does, whose rules deny some hosts.
func (l land) result(t *testing.T, p *mcp.Part, script string, denied ...string) tool.Result {
	t.Helper()
	r, err := p.Execute(t.Context(), tool.Invocation{
		SessionID: "ses_1", TurnID: "trn_1", CallID: "call_1", Attempt: 1, ToolID: "mcp__x__sh", Name: "mcp__x__sh", Args: mustJSON(t, words{script}), Sandbox: inWorkspace, Cwd: l.a,
		Network: &protocol.NetworkAccess{Denied: denied},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHostsOfServers(t *testing.T) {
	l := settled(t)
	at := webServer(t)
	get := "curl -sS --max-time 10 http://" + at + "/; curl -s http://b.example.com:8080 >/dev/null; true"
	refused := []protocol.RefusedHost{{Host: "b.example.com:8080", Reason: "the settings of the server do not name it", Hosts: []string{"b.example.com:8080"}}}
	for from, begins := range map[string]func() *mcp.Part{
		"the plugin": func() *mcp.Part {
			s := guest("shell")
			s.Hosts = []string{at}
			c := config(t, map[string]manifest.Server{"x": s})
			c.Workspace = true
			return begin(t, l.pool(t, nil), c)
		},
		"config.toml": func() *mcp.Part {
			return begin(t, l.pool(t, func(p *mcp.PoolConfig) { p.Settings = map[string]manifest.ServerSandbox{"x": {Hosts: []string{at}}} }), config(t, map[string]manifest.Server{"x": guest("shell")}))
		},
	} {
		t.Run("part11/network a server reaches the hosts of its settings in "+from+", and a call reports each other host", func(t *testing.T) {
			p := begins()
			for range 2 { // the second call has the same process
				r := l.result(t, p, get)
				advice := "add this to config.toml, and restart lashd:\n[mcp.x]\nhosts = [\"" + at + "\",\"b.example.com:8080\"]]\n"
				if from == "the plugin" {
					advice = "add this to the server in the plugin's file, and trust the plugin again:\n\"hosts\": [\"" + at + "\",\"b.example.com:8080\"]]\n"
				}
				if want := "\n[The sandbox refused b.example.com:8080 (the settings of the server do not name it). If the task needs that, a person can " + advice; !strings.HasPrefix(r.Output.Text, "hello") || !strings.HasSuffix(r.Output.Text, want) {
					t.Errorf("it says %q\nwant at the end %q", r.Output.Text, want)
				}
				if r.Refused == nil || r.Refused.Mode != inWorkspace || len(r.Refused.Retry) > 0 || r.Refused.WithHosts != nil {
					t.Fatalf("the refusal is %+v", r.Refused)
				}
				r.Refused.Hosts[0].AtMs = 0
				if diff := cmp.Diff(refused, r.Refused.Hosts); diff != "" {
					t.Error(diff)
				}
			}
			if r := l.result(t, p, "true"); r.Refused != nil || strings.Contains(r.Output.Text, "refused") {
				t.Errorf("a later call without hosts reports %+v, %q", r.Refused, r.Output.Text)
			}
			if got := p.Status()[0].Sandbox; got != "that of the session, reaches "+at {
				t.Errorf("its sandbox is %q", got)
			}
		})
		t.Run("part11/network a rule that denies a host is stronger than the settings of a server in "+from, func(t *testing.T) {
			p := begins()
			first := l.result(t, p, "echo $PPID; "+get).Output.Text
			r := l.result(t, p, "echo $PPID; "+get, "127.0.0.1")
			if strings.Contains(r.Output.Text, "hello") || r.Refused == nil || !strings.HasPrefix(r.Refused.What, "The sandbox refused "+at+" (a rule denies it), ") {
				t.Errorf("it says %q, %+v", r.Output.Text, r.Refused)
			}
			if !strings.Contains(first, "hello") {
				t.Errorf("without the rule it says %q", first)
			}
		})
	}
	t.Run("part13/6 a rule that denies a host is stronger for prompts, too", func(t *testing.T) {
		var denied []string
		p := begin(t, l.pool(t, func(c *mcp.PoolConfig) {
			c.Settings = map[string]manifest.ServerSandbox{"x": {Hosts: []string{at}}}
			c.Denied = func(_ context.Context, id protocol.SessionID) ([]string, error) {
				if id != "ses_1" {
					t.Errorf("it asks for the rules of %s", id)
				}
				return denied, nil
			}
		}), config(t, map[string]manifest.Server{"x": guest("shell")}))
		session := mcp.Session{ID: "ses_1", Cwd: l.a, Sandbox: inWorkspace}
		for want, hosts := range map[bool][]string{true: nil, false: {"127.0.0.1"}} {
			denied = hosts
			text, _, err := p.Prompt(t.Context(), session, "x", "run", map[string]string{"script": get})
			if err != nil || strings.Contains(text, "hello") != want {
				t.Errorf("with rules that deny %q the server says %q, %v", hosts, text, err)
			}
		}
	})
	t.Run("part11/network a server that fails to start for lack of a host names the setting", func(t *testing.T) {
		s := manifest.Server{Command: "sh", Args: []string{"-c", "curl -sS http://c.example.com >&2; exit 1"}}
		s.Hosts = []string{at}
		p := begin(t, l.pool(t, func(c *mcp.PoolConfig) { c.Default = inWorkspace }), config(t, map[string]manifest.Server{"x": s}))
		want := "\nIt ran in a sandbox. The sandbox refused c.example.com (the settings of the server do not name it). If it needs that, add this to config.toml, and restart lashd:\n[mcp.x]\nhosts = [\"" + at + "\",\"c.example.com\"]"
		if got := p.Status()[0].LastError; !strings.HasSuffix(got, want) {
			t.Errorf("it says %q", got)
		}
		s = manifest.Server{Command: "sh", Args: []string{"-c", "curl -sS http://c.example.com >&2; exit 1"}}
		p = begin(t, l.pool(t, func(c *mcp.PoolConfig) { c.Default = inWorkspace }), config(t, map[string]manifest.Server{"x": s}))
		if got, want := p.Status()[0].LastError, "[mcp.x]\nhosts = [\"c.example.com\"]"; !strings.HasSuffix(got, want) {
			t.Errorf("without any hosts it says %q", got)
		}
	})
	t.Run("part11/network wrong hosts of a server are rejected", func(t *testing.T) {
		s := guest("shell")
		s.Hosts = []string{"a*.example.com"}
		p := begin(t, l.pool(t, func(c *mcp.PoolConfig) { c.Default = inWorkspace }), config(t, map[string]manifest.Server{"x": s}))
		if got := p.Status()[0].LastError; !strings.Contains(got, "prepare its sandbox: the setting hosts: host \"a*.example.com\": ") {
			t.Errorf("it says %q", got)
		}
	})
}

func TestRefusedHostsOfServersInASession(t *testing.T) {
	l := settled(t)
	at := webServer(t)
	args := string(mustJSON(t, words{"curl -s http://" + at + "; curl -s http://b.example.com >/dev/null; true"}))
	for _, c := range []struct {
		row   string
		rules []protocol.ApprovalRule
		says  string
		hosts string
	}{
		{"the audit has each host that the sandbox of a server refused", nil, "hello", "b.example.com"},
		{"a rule of the session that denies a host is stronger than the settings", []protocol.ApprovalRule{{Host: "127.0.0.1", Action: protocol.ApproveDeny}}, "lashd: the sandbox refuses " + at + ": a rule denies it", at + " b.example.com"},
	} {
		t.Run("part11/network "+c.row, func(t *testing.T) {
			s := guest("shell")
			s.Hosts = []string{at}
			d := plugged(t, begin(t, l.pool(t, nil), config(t, map[string]manifest.Server{"x": s})), calling("mcp__x__sh", args))
			approval := &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: inWorkspace, Rules: c.rules}
			id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: l.a, Approval: approval}))(t).SessionID
			d.Turn(t, id, "go")
			if got := d.Result(t, id); !strings.HasPrefix(got.Text, c.says) {
				t.Errorf("it says %q", got.Text)
			}
			all := builtintest.Must(audit.List(t.Context(), d.Store, &protocol.AuditListParams{SessionID: id, Kind: protocol.AuditRefused}))(t).Data
			var hosts []string
			for _, a := range all {
				for _, h := range a.Hosts {
					hosts = append(hosts, h.Host)
				}
			}
			if len(all) != 1 || all[0].Tool != "mcp__x__sh" || all[0].CallID != "c1" || strings.Join(hosts, " ") != c.hosts {
				t.Errorf("the audit has %+v", all)
			}
		})
	}
}

// mustJSON returns a value as JSON.
func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
