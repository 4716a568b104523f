package approval_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lashd/engine/approval"
	"lashd/engine/hostrule"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// reachingHosts returns a call in a sandbox that names hosts, with these policies.
func reachingHosts(t testing.TB, hosts []string, policies ...protocol.ApprovalConfig) *approval.Request {
	t.Helper()
	about := []tool.Subject{{Command: "true"}}
	for _, h := range hosts {
		about = append(about, tool.Subject{Host: h})
	}
	q := calling(t, "shell", protocol.ToolKindExecute, about...)
	q.Programs, q.Policies = tool.ProgramsInside, nil
	for i, a := range policies {
		q.Policies = append(q.Policies, approval.Policy{Policy: protocol.Policy{Cwd: "/w", Approval: a}, Own: i == 0})
	}
	return q
}

func host(action protocol.ApprovalMode, pattern string) protocol.ApprovalRule {
	return protocol.ApprovalRule{Host: pattern, Action: action}
}

func TestNetworkOfCalls(t *testing.T) {
	in := func(mode protocol.SandboxMode, rules ...protocol.ApprovalRule) protocol.ApprovalConfig {
		return protocol.ApprovalConfig{Sandbox: mode, Rules: rules}
	}
	const read, work, full = protocol.SandboxReadOnly, protocol.SandboxWorkspace, protocol.SandboxFullAccess
	a := protocol.HostRules{Allow: []string{"a.test"}}
	for _, c := range []struct {
		name     string
		hosts    []string
		policies []protocol.ApprovalConfig
		want     *protocol.NetworkAccess
	}{
		{"without hosts and rules there is no network", nil, []protocol.ApprovalConfig{in(work)}, nil},
		{"a rule that denies opens nothing", nil, []protocol.ApprovalConfig{in(work, host(deny, "b.test"))}, nil},
		{"outside of a sandbox there is nothing to open", []string{"a.test"}, []protocol.ApprovalConfig{in(full)}, nil},
		{"hosts of the call", []string{"a.test"}, []protocol.ApprovalConfig{in(work)}, &protocol.NetworkAccess{Granted: []string{"a.test"}}},
		{"hosts of rules", nil, []protocol.ApprovalConfig{in(read, host(allow, "a.test"), host(asks, "b.test"), host(deny, "c.test"))}, &protocol.NetworkAccess{
			Rules: []protocol.HostRules{{Allow: []string{"a.test"}, Ask: []string{"b.test"}}}, Denied: []string{"c.test"},
		}},
		{"equal policies count once", nil, []protocol.ApprovalConfig{in(work, host(allow, "a.test")), in(read, host(allow, "a.test"))}, &protocol.NetworkAccess{Rules: []protocol.HostRules{a}}},
		{"each policy with a sandbox has to allow", nil, []protocol.ApprovalConfig{in(work, host(allow, "a.test")), in(read)}, nil},
		{"different policies count both", nil, []protocol.ApprovalConfig{in(work, host(allow, "a.test")), in(read, host(allow, "*.test"))}, &protocol.NetworkAccess{
			Rules: []protocol.HostRules{a, {Allow: []string{"*.test"}}},
		}},
		{"a policy without a sandbox only denies", nil, []protocol.ApprovalConfig{in(full, host(deny, "c.test"), host(allow, "x.test")), in(read, host(allow, "a.test"))}, &protocol.NetworkAccess{
			Rules: []protocol.HostRules{a}, Denied: []string{"c.test"},
		}},
		{"a rule about another tool does not count", nil, []protocol.ApprovalConfig{in(work, protocol.ApprovalRule{Tool: "other", Host: "a.test", Action: allow})}, nil},
	} {
		t.Run("part11/network "+c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, reachingHosts(t, c.hosts, c.policies...).Network()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("part11/network a tool that does not confine its programs reaches no hosts", func(t *testing.T) {
		q := reachingHosts(t, []string{"a.test"}, in(work, host(allow, "a.test")))
		for _, q.Programs = range []tool.Programs{tool.ProgramsUnknown, tool.ProgramsOutside} {
			if q.Network() != nil || q.Hosts() != nil {
				t.Errorf("programs %d reach %+v", q.Programs, q.Network())
			}
		}
	})
	t.Run("part11/network a tool that does not know of sandboxes gets only the hosts that rules deny", func(t *testing.T) {
		q := reachingHosts(t, nil, in(work, host(allow, "a.test"), host(deny, "c.test")), in(full, host(deny, "b.test"), host(deny, "c.test")))
		q.Programs = tool.ProgramsUnknown
		if diff := cmp.Diff(&protocol.NetworkAccess{Denied: []string{"b.test", "c.test"}}, q.Network()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("part11/network a host without a port is judged for all ports that it opens", func(t *testing.T) {
		for _, rule := range []protocol.ApprovalRule{host(allow, "a.test:443"), host(allow, "a.test:80")} {
			if got := reachingHosts(t, []string{"a.test"}, in(work, rule)).Judge(approval.Answers{}).Mode; got != asks {
				t.Errorf("with %s: %s", rule, got)
			}
		}
		for action, want := range map[protocol.ApprovalMode]protocol.ApprovalMode{asks: asks, deny: allow} { // the proxy denies port 80
			if got := reachingHosts(t, []string{"a.test"}, in(work, host(allow, "a.test"), host(action, "a.test:80"))).Judge(approval.Answers{}).Mode; got != want {
				t.Errorf("port 80 has %s, and the call %s, want %s", action, got, want)
			}
		}
	})
	t.Run("part11/network a person sees the hosts", func(t *testing.T) {
		q := reachingHosts(t, []string{"a.test", "b.test"}, in(work))
		d := q.Question(protocol.ToolCall{Name: "shell", Args: []byte(`{}`)}, q.Judge(approval.Answers{}))
		if !slices.Equal(d.Detail.Hosts, []string{"a.test", "b.test"}) || d.Prompt != `Allow the tool shell to run with {}? The command could reach ["a.test","b.test"].` {
			t.Errorf("%+v, %q", d.Detail, d.Prompt)
		}
	})
}

// TestNetworkNeverGrows checks random policies: an unasked call reaches only hosts that every policy with a sandbox allows by a rule.
func TestNetworkNeverGrows(t *testing.T) {
	hosts := []string{"a.test", "b.test", "x.a.test", "a.test:80", "a.test:8080", "10.0.0.1"}
	patterns := append([]string{"*", "*.test", "*.a.test", "b.test:443"}, hosts...)
	rapid.Check(t, func(rt *rapid.T) {
		var policies []protocol.ApprovalConfig
		for range rapid.IntRange(1, 3).Draw(rt, "policies") {
			a := protocol.ApprovalConfig{Sandbox: rapid.SampledFrom([]protocol.SandboxMode{"readOnly", "workspace", "fullAccess"}).Draw(rt, "mode"), Mode: rapid.SampledFrom([]protocol.ApprovalMode{"", allow}).Draw(rt, "approval")}
			for range rapid.IntRange(0, 3).Draw(rt, "rules") {
				a.Rules = append(a.Rules, host(rapid.SampledFrom([]protocol.ApprovalMode{allow, asks, deny}).Draw(rt, "action"), rapid.SampledFrom(patterns).Draw(rt, "pattern")))
			}
			policies = append(policies, a)
		}
		wanted := rapid.SliceOfN(rapid.SampledFrom(patterns), 0, 2).Draw(rt, "wanted")
		q := reachingHosts(t, wanted, policies...)
		n := q.Network()
		if n == nil || q.Judge(approval.Answers{}).Mode != allow {
			return
		}
		for _, target := range hosts {
			h, err := hostrule.Host(target, 443)
			if err != nil {
				rt.Fatal(err)
			}
			if reaches(n, h) && !allowedByAll(policies, h) {
				rt.Fatalf("%s is reached by %+v with %+v", h, n, policies)
			}
		}
	})
}

// reaches is what the proxy does with an access.
func reaches(n *protocol.NetworkAccess, h hostrule.Pattern) bool {
	matches := func(all []string, f func(hostrule.Pattern) bool) bool {
		return slices.ContainsFunc(all, func(text string) bool {
			p, err := hostrule.Parse(text)
			return err == nil && f(p)
		})
	}
	allows := func(p hostrule.Pattern) bool { return p.Allows(h) }
	concerns := func(p hostrule.Pattern) bool { return p.Concerns(h) }
	if matches(n.Denied, concerns) {
		return false
	}
	inRules := len(n.Rules) > 0 && !slices.ContainsFunc(n.Rules, func(r protocol.HostRules) bool { return !matches(r.Allow, allows) || matches(r.Ask, concerns) })
	return matches(n.Granted, allows) || inRules
}

// allowedByAll is the model: each policy with a sandbox has a rule that allows the host, and none that asks; no policy denies it.
func allowedByAll(policies []protocol.ApprovalConfig, h hostrule.Pattern) bool {
	for _, a := range policies {
		allowed := !a.Sandbox.Confines()
		for _, r := range a.Rules {
			p, err := hostrule.Parse(r.Host)
			switch {
			case err != nil:
			case r.Action == allow:
				allowed = allowed || p.Allows(h)
			case r.Action == deny && p.Concerns(h), a.Sandbox.Confines() && p.Concerns(h):
				return false
			}
		}
		if !allowed {
			return false
		}
	}
	return true
}
