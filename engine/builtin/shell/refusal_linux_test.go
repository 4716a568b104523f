package shell_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/audit"
	"lashd/engine/builtin/builtintest"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// notAllowed is the reason for a host that nothing allows.
const notAllowed = "no rule allows it, and the call did not name it"

// object returns JSON with its keys in the order of a map.
func object(t *testing.T, fields map[string]any) json.RawMessage {
	t.Helper()
	encoded, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// untimed returns a refusal without the times of its hosts, which must be of the last minute.
func untimed(t *testing.T, r *protocol.SandboxRefusal) *protocol.SandboxRefusal {
	t.Helper()
	if r == nil {
		return nil
	}
	same := *r
	same.Hosts = untimedHosts(t, r.Hosts)
	return &same
}

// untimedHosts is untimed for hosts.
func untimedHosts(t *testing.T, hosts []protocol.RefusedHost) []protocol.RefusedHost {
	t.Helper()
	all := slices.Clone(hosts)
	for i := range all {
		if age := time.Now().UnixMilli() - all[i].AtMs; age < 0 || age > time.Minute.Milliseconds() {
			t.Errorf("%s was refused %d ms ago", all[i].Host, age)
		}
		all[i].AtMs = 0
	}
	return all
}

// audited returns the audit records of a session.
func audited(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) []protocol.AuditEntry {
	t.Helper()
	r, err := audit.List(t.Context(), d.Store, &protocol.AuditListParams{SessionID: id, Kind: protocol.AuditRefused})
	if err != nil {
		t.Fatal(err)
	}
	return r.Data
}

func TestRefusalsOfTheProxy(t *testing.T) {
	u := newUser(t)
	at := hello(t)
	config := func(rules ...protocol.ApprovalRule) *protocol.ApprovalConfig {
		return &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Rules: append(rules, hostRule(protocol.ApproveAllow, at))}
	}
	const quiet = "for h in a.example.com b.example.com a.example.com; do curl -s http://$h; done >/dev/null 2>&1"
	refused := func(host string, hosts ...string) protocol.RefusedHost {
		return protocol.RefusedHost{Host: host, Reason: notAllowed, Hosts: hosts}
	}
	for _, c := range []struct {
		row    string
		args   map[string]any
		config *protocol.ApprovalConfig
		want   *protocol.SandboxRefusal
	}{
		{"a command that prints nothing and succeeds names each host once, and offers the call with them", map[string]any{"command": quiet + "; true", "hosts": []string{at}}, config(), &protocol.SandboxRefusal{
			What: "The sandbox refused a.example.com (" + notAllowed + "), b.example.com (" + notAllowed + ").", Mode: protocol.SandboxWorkspace,
			Hosts:     []protocol.RefusedHost{refused("a.example.com", "a.example.com"), refused("b.example.com", "b.example.com")},
			WithHosts: &protocol.HostsRetry{Hosts: []string{"a.example.com", "b.example.com"}, Retry: object(t, map[string]any{"command": quiet + "; true", "hosts": []string{at, "a.example.com", "b.example.com"}})},
			Retry:     object(t, map[string]any{"command": quiet + "; true", "outside": true}),
		}},
		{"a host that a rule denies is not offered", map[string]any{"command": "curl -s http://a.example.com"}, config(hostRule(protocol.ApproveDeny, "a.example.com")), &protocol.SandboxRefusal{
			What: "The sandbox refused a.example.com (a rule denies it).", Mode: protocol.SandboxWorkspace, Hosts: []protocol.RefusedHost{{Host: "a.example.com", Reason: "a rule denies it"}},
			Retry: object(t, map[string]any{"command": "curl -s http://a.example.com", "outside": true}),
		}},
		{"without a proxy the host that the output names is offered", map[string]any{"command": "curl -sS https://Registry.example.com/x"}, &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}, &protocol.SandboxRefusal{
			What: "The command ran in a sandbox, and it has no network. It seems to need registry.example.com.",
			Mode: protocol.SandboxWorkspace, WithHosts: &protocol.HostsRetry{Hosts: []string{"registry.example.com"}, Retry: object(t, map[string]any{"command": "curl -sS https://Registry.example.com/x", "hosts": []string{"registry.example.com"}})},
			Retry: object(t, map[string]any{"command": "curl -sS https://Registry.example.com/x", "outside": true}),
		}},
		{"a command that prints nothing may lack the host of its address, by its exit code", map[string]any{"command": "curl -s https://Registry.example.com/x"}, &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}, &protocol.SandboxRefusal{
			What: "The command may have failed because it ran in a sandbox: it has no network. It seems to need registry.example.com.",
			Mode: protocol.SandboxWorkspace, WithHosts: &protocol.HostsRetry{Hosts: []string{"registry.example.com"}, Retry: object(t, map[string]any{"command": "curl -s https://Registry.example.com/x", "hosts": []string{"registry.example.com"}})},
			Retry: object(t, map[string]any{"command": "curl -s https://Registry.example.com/x", "outside": true}),
		}},
		{"SSH reaches no host, so none is offered", map[string]any{"command": "echo 'ssh: Could not resolve hostname a.example.com: Temporary failure in name resolution'; exit 255"}, &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}, &protocol.SandboxRefusal{
			What: "The command ran in a sandbox, and it has no SSH. It reaches allowed hosts only by HTTP and HTTPS, so use an address with https:// if the host has one.", Mode: protocol.SandboxWorkspace,
			Retry: object(t, map[string]any{"command": "echo 'ssh: Could not resolve hostname a.example.com: Temporary failure in name resolution'; exit 255", "outside": true}),
		}},
		{"a guessed host that a rule denies is not offered", map[string]any{"command": "curl -s https://a.example.com --noproxy '*'"}, &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Rules: []protocol.ApprovalRule{hostRule(protocol.ApproveDeny, "a.example.com")}}, &protocol.SandboxRefusal{
			What: "The command may have failed because it ran in a sandbox: it has no network. It seems to need a.example.com.",
			Mode: protocol.SandboxWorkspace, Retry: object(t, map[string]any{"command": "curl -s https://a.example.com --noproxy '*'", "outside": true}),
		}},
		{"a command that reaches its hosts has none", map[string]any{"command": "curl -s http://" + at}, config(), nil},
	} {
		t.Run("part11/network "+c.row, func(t *testing.T) {
			d := u.daemonOf(t, t.TempDir(), "shell", c.args)
			id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: u.work, Approval: c.config}))(t).SessionID
			got := d.Turn(t, id, "go").ToolCalls[0].Output.Refusal
			if diff := cmp.Diff(c.want, untimed(t, got)); diff != "" {
				t.Error(diff)
			}
			all := audited(t, d, id)
			if len(all) > 1 || (len(all) == 1) != (c.want != nil) || got != nil && (!cmp.Equal(all[0].Hosts, got.Hosts) || all[0].Why.Text != got.What) {
				t.Errorf("the audit has %+v", all)
			}
		})
	}
}

func TestRefusalsInTheBackground(t *testing.T) {
	u := newUser(t)
	config := &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Rules: []protocol.ApprovalRule{hostRule(protocol.ApproveAllow, "x.test")}}
	const command = "curl -s http://a.example.com >/dev/null; exit 3"
	refused := []protocol.RefusedHost{{Host: "a.example.com", Reason: notAllowed, Hosts: []string{"a.example.com"}}}
	what := "The sandbox refused a.example.com (" + notAllowed + ")."
	for name, c := range map[string]struct{ args, again map[string]any }{
		"start_command": {
			map[string]any{"command": command, "wake": true, "label": "fetch", "rerunnable": true, "timeoutMs": 9000},
			map[string]any{"command": command, "wake": true, "label": "fetch", "rerunnable": true, "timeoutMs": 9000, "workdir": u.work},
		},
		"start_monitor": {map[string]any{"id": "m", "command": command, "notifyOnly": true}, map[string]any{"id": "m", "command": command, "notifyOnly": true, "timeoutMs": 300_000}},
	} {
		t.Run("part11/network "+name+" reports refused hosts in the outcome of its task and in the audit", func(t *testing.T) {
			d := u.daemonOf(t, t.TempDir(), name, c.args)
			id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: u.work, Approval: config}))(t).SessionID
			d.Turn(t, id, "go")
			wait.Until(t, "the command has ended", func() bool { return taskOf(t, d, id).State.Final() })
			c.again["hosts"] = []string{"a.example.com"}
			want := &protocol.SandboxRefusal{
				What: what, Mode: protocol.SandboxWorkspace, Hosts: refused, Tool: name, WithHosts: &protocol.HostsRetry{Hosts: []string{"a.example.com"}, Retry: object(t, c.again)},
			}
			delete(c.again, "hosts")
			c.again["outside"] = true
			want.Retry = object(t, c.again)
			task := taskOf(t, d, id)
			if diff := cmp.Diff(want, untimed(t, task.Outcome.Refusal)); diff != "" {
				t.Error(diff)
			}
			all := audited(t, d, id)
			if len(all) != 1 {
				t.Fatalf("the audit has %+v", all)
			}
			at := protocol.AuditRecord{
				Kind: protocol.AuditRefused, TaskID: task.ID, Tool: name, Subject: command, Dir: u.work, Sandbox: protocol.SandboxWorkspace, Hosts: refused,
				Why: protocol.ApprovalReason{By: protocol.DecidedBySandbox, Text: what},
			}
			all[0].Hosts = untimedHosts(t, all[0].Hosts)
			if diff := cmp.Diff(at, all[0].AuditRecord); diff != "" {
				t.Error(diff)
			}
			again := &protocol.ToolCallParams{SessionID: id, Name: name, Args: task.Outcome.Refusal.WithHosts.Retry}
			if out := builtintest.Must(d.Tools.Call(t.Context(), again))(t).Output; out.Failure != nil {
				t.Errorf("called with the offered arguments: %+v", out.Failure)
			}
		})
	}
}

func TestRerunnableCommandKeepsItsHosts(t *testing.T) {
	t.Run("part11/network a rerunnable command reaches its hosts again after a restart of the daemon", func(t *testing.T) {
		u := newUser(t)
		at, dir := hello(t), t.TempDir()
		args := map[string]any{"command": "curl -s http://" + at + "; curl -s http://a.example.com; sleep 60", "hosts": []string{at}, "rerunnable": true}
		config := &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Rules: []protocol.ApprovalRule{hostRule(protocol.ApproveAllow, at)}}
		d := u.daemonOf(t, dir, "start_command", args)
		id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: u.work, Approval: config}))(t).SessionID
		d.Turn(t, id, "go")
		const refused = "lashd: the sandbox refuses a.example.com: no rule allows it, and the call did not name it\n"
		once := "hello " + at + "\n" + refused
		wait.Until(t, "the command has reached its host", func() bool { return outputOf(t, d, id) == once })
		d.Stop()
		d = u.daemonOf(t, dir, "start_command", args)
		wait.Until(t, "the command has reached its host again", func() bool { return strings.HasSuffix(outputOf(t, d, id), once) && taskOf(t, d, id).Attempt == 2 })
		if got := strings.Count(outputOf(t, d, id), once); got != 2 {
			t.Errorf("it reached its host %d times: %q", got, outputOf(t, d, id))
		}
	})
}
