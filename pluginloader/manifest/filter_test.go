package manifest_test

import (
	"strings"
	"testing"

	"lashd/pluginloader/manifest"
)

func TestFilterOfAHookIsNamedIfItHasNoEffect(t *testing.T) {
	for _, c := range []struct{ event, permission, want string }{
		{"PreToolUse", `"Bash(rm *)"`, ""},
		{"PostToolUse", `"mcp__db__*"`, ""},
		{"PreToolUse", `null`, ""},
		{"PreToolUse", `"Bash(rm *"`, `hooks.json:1:67: warning: "if" is not a permission such as "Bash(git push *)", so the hook runs for all calls of its matcher`},
		{"PreToolUse", `["Bash"]`, `hooks.json:1:67: warning: "if" is not a permission such as "Bash(git push *)", so the hook runs for all calls of its matcher`},
		{"PreToolUse", `"WebSearch"`, `hooks.json:1:67: warning: lashd cannot compare calls with "WebSearch", so the hook runs for all calls of its matcher`},
		{"PreToolUse", `"WebFetch(domain:a b)"`, `hooks.json:1:67: warning: lashd cannot compare calls with "WebFetch(domain:a b)", so the hook runs for all calls of its matcher`},
		{"PreToolUse", `"Bash(git * --force)"`, `hooks.json:1:67: warning: "if" covers all calls of the rule command git`},
		{"Stop", `"Bash"`, `hooks.json:1:61: warning: "if" has no effect on Stop: the hook always runs`},
	} {
		t.Run("part13/5 "+c.event+" "+c.permission, func(t *testing.T) {
			hooks, problems := manifest.ParseHooks("hooks.json", []byte(`{"hooks":{"`+c.event+`":[{"hooks":[{"type":"command","command":"x","if":`+c.permission+`}]}]}}`))
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n"), c.want)
			}
			if len(hooks) != 1 || (hooks[0].If == nil) != (strings.Contains(c.want, "runs")) && c.permission != "null" {
				t.Errorf("hooks: %+v", hooks)
			}
		})
	}
}
