package cli

import (
	"strings"
	"testing"
)

// TestRulesInTheChat lists and tries rules in the chat.
func TestRulesInTheChat(t *testing.T) {
	p := newSandboxedPlace(t, nil)
	p.want(0, "added", "", "rules", "add", "deny", "command", "git push")
	for line, answers := range map[string][]string{
		"/rules list":                        {"Rules for this session; of several that match, deny wins, then ask, then allow:", "workspace deny command git push"},
		"/rules test git fetch && git push":  {"Decision: deny", "Command that decides: git push"},
		"/rules test go test":                {"Decision: allow", "Sandbox: workspace"},
		"/rules add deny command":            {"usage: /rules, /rules add"},
		"/rules add session ask host a.test": {"Added: ask host a.test"},
	} {
		t.Run("issue/20-3 the chat answers "+line, func(t *testing.T) {
			c := newPTY(t)
			c.chats(p, []string{"chat"}, line, answers[0])
			for _, text := range answers {
				if !c.shows(text) {
					t.Errorf("it does not show %q: %q", text, c.text())
				}
			}
		})
	}
}

// TestRulesOfASession adds, lists, tries and removes a rule of one session.
func TestRulesOfASession(t *testing.T) {
	t.Run("issue/20-3 a rule of a session applies to that session alone", func(t *testing.T) {
		p := newSandboxedPlace(t, nil)
		id := p.session()
		rules := func(args ...string) string {
			t.Helper()
			return p.want(0, "", "", append([]string{"rules", args[0]}, args[1:]...)...).out
		}
		decides := func(want string, args ...string) {
			t.Helper()
			if got := rules(append([]string{"test"}, append(args, "git push")...)...); !strings.HasPrefix(got, "Decision:  "+want+"\n") {
				t.Errorf("with %q it says %q, want %s", args, got, want)
			}
		}
		rules("add", "--session", id, "deny", "command", "git push")
		decides("deny", "--session", id)
		decides("allow")
		if of, all := rules("list", "--session", id), rules("list"); !strings.Contains(of, "deny command git push") || strings.Contains(all, "git push") {
			t.Errorf("the session has %q, the workspace %q", of, all)
		}
		rules("remove", "--session", id, "deny", "command", "git push")
		decides("allow", "--session", id)
	})
}
