package authority_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// oracle is a second implementation of the documented rules: the strictest matching rule, else the mode.
func oracle(a protocol.ApprovalConfig, tool string, reads bool, at string) string {
	said := ""
	for _, r := range a.Rules {
		names := r.Tool == tool || r.Tool == "*"
		if !names || r.Path != "" && at != r.Path && !strings.HasPrefix(at, r.Path+"/") {
			continue
		}
		switch {
		case r.Action == "deny":
			said = "deny"
		case r.Action == "ask" && said != "deny":
			said = "ask"
		case r.Action == "allow" && said == "":
			said = "allow"
		}
	}
	switch {
	case said != "":
		return said
	case a.Mode != "":
		return string(a.Mode)
	case reads:
		return "allow"
	}
	return "ask"
}

func rank(verdict string) int { return slices.Index([]string{"allow", "ask", "deny"}, verdict) }

// policies generates approval configurations over two tools and two places.
func policies() *rapid.Generator[protocol.ApprovalConfig] {
	actions := rapid.SampledFrom([]protocol.ApprovalMode{"allow", "ask", "deny"})
	rule := rapid.Custom(func(t *rapid.T) protocol.ApprovalRule {
		return protocol.ApprovalRule{
			Tool: rapid.SampledFrom([]string{"read", "shell", "*"}).Draw(t, "tool"), Path: rapid.SampledFrom([]string{"", "a", "a/b"}).Draw(t, "path"),
			Action: actions.Draw(t, "action"),
		}
	})
	return rapid.Custom(func(t *rapid.T) protocol.ApprovalConfig {
		return protocol.ApprovalConfig{
			Mode: rapid.SampledFrom([]protocol.ApprovalMode{"", "allow", "ask", "deny"}).Draw(t, "mode"), Rules: rapid.SliceOfN(rule, 0, 3).Draw(t, "rules"),
			Default: rapid.SampledFrom([]protocol.ApprovalMode{"", "allow", "deny"}).Draw(t, "default"),
		}
	})
}

// near returns a policy that is similar to another one.
func near(t *rapid.T, p protocol.ApprovalConfig) protocol.ApprovalConfig {
	q := policies().Draw(t, "near")
	q.Rules = append(slices.Clone(p.Rules), q.Rules...)
	if len(q.Rules) > 0 && rapid.Bool().Draw(t, "drop") {
		at := rapid.IntRange(0, len(q.Rules)-1).Draw(t, "at")
		q.Rules = slices.Delete(q.Rules, at, at+1)
	}
	return q
}

func TestStricter(t *testing.T) {
	t.Run("issue/20-1 a rule that allows opens a sandbox, so it is laxer even where the mode allows all calls", func(t *testing.T) {
		for _, rule := range []protocol.ApprovalRule{{Tool: "shell", Action: "allow"}, {Command: "git push", Action: "allow"}, {Host: "*", Action: "allow"}} {
			boxed := protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: protocol.SandboxWorkspace}
			opened := boxed
			opened.Rules = []protocol.ApprovalRule{rule}
			if err := authority.Stricter(opened, boxed); err == nil || authority.Stricter(boxed, opened) != nil {
				t.Errorf("%s: %v", rule, err)
			}
		}
	})
	t.Run("outside/2 a stricter configuration never allows more", func(t *testing.T) {
		compared := 0
		rapid.Check(t, func(t *rapid.T) {
			b := policies().Draw(t, "b")
			a := near(t, b)
			if authority.Stricter(a, b) != nil {
				return
			}
			compared++
			for _, tool := range []string{"read", "shell"} {
				for _, at := range []string{"", "a", "a/b", "a/b/c", "c"} {
					if x, y := oracle(a, tool, tool == "read", at), oracle(b, tool, tool == "read", at); rank(x) < rank(y) {
						t.Fatalf("%s at %q: %s under %+v, %s under %+v", tool, at, x, a, y, b)
					}
				}
			}
			if a.Default == "allow" && b.Default != "allow" {
				t.Fatalf("unanswered questions are allowed by %+v, not by %+v", a, b)
			}
		})
		if compared == 0 {
			t.Error("nothing was compared")
		}
	})
	t.Run("outside/2 every laxer difference is found", func(t *testing.T) {
		ask, allow, deny := protocol.ApproveAsk, protocol.ApproveAllow, protocol.ApproveDeny
		rules := func(mode protocol.ApprovalMode, all ...protocol.ApprovalRule) protocol.ApprovalConfig {
			return protocol.ApprovalConfig{Mode: mode, Rules: all}
		}
		x := func(action protocol.ApprovalMode) protocol.ApprovalRule {
			return protocol.ApprovalRule{Tool: "x", Action: action}
		}
		at := func(path string) protocol.ApprovalRule {
			return protocol.ApprovalRule{Tool: "x", Path: path, Action: deny}
		}
		for name, c := range map[string]struct {
			a, b  protocol.ApprovalConfig
			holds bool
		}{
			"the same":                       {rules(ask, x(allow)), rules(ask, x(allow)), true},
			"a stricter mode":                {rules(deny), rules(ask), true},
			"a laxer mode":                   {rules(allow), rules(ask), false},
			"the default mode for ask":       {rules(""), rules(ask), false},
			"a rule that allows":             {rules(ask, x(allow)), rules(ask), false},
			"a rule that asks under deny":    {rules(deny, x(ask)), rules(deny), false},
			"a rule that asks under allow":   {rules(allow, x(ask)), rules(allow), true},
			"without a rule that denies":     {rules(ask), rules(ask, x(deny)), false},
			"asking instead of denying":      {rules(ask, x(ask)), rules(ask, x(deny)), false},
			"denying instead of asking":      {rules(ask, x(deny)), rules(ask, x(ask)), true},
			"without a rule that allows":     {rules(ask), rules(ask, x(allow)), true},
			"allowing instead of asking":     {rules(allow, x(allow)), rules(allow, x(ask)), false},
			"allowing beside denying":        {rules(ask, x(deny), x(allow)), rules(ask, x(deny)), false},
			"denying elsewhere":              {rules(allow, at("a")), rules(allow, at("b")), false},
			"denying another tool":           {rules(allow, protocol.ApprovalRule{Tool: "y", Action: deny}), rules(allow, x(deny)), false},
			"an unanswered question allowed": {protocol.ApprovalConfig{Default: allow}, protocol.ApprovalConfig{}, false},
			"allowed sooner":                 {protocol.ApprovalConfig{Default: allow, DeadlineMs: 1}, protocol.ApprovalConfig{Default: allow, DeadlineMs: 9}, false},
		} {
			if err := authority.Stricter(c.a, c.b); (err == nil) != c.holds {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
