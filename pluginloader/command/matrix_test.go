//go:build unix

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// opened is a session with the plugin kit, and others after it.
func opened(t testing.TB, p *Part, others ...plugin.Factory) *plugin.Session {
	t.Helper()
	h, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, append([]plugin.Factory{plugin.Builder("kit", p.Spec)}, others...))
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Open(t.Context(), standard.ID, nil, plugin.BuildContext{SessionID: "ses_1", Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// hooked is a session with one hook, as the loader would give it.
func hooked(t testing.TB, c Config, event string, handler string) *plugin.Session {
	t.Helper()
	hooks, problems := manifest.ParseHooks("hooks/hooks.json", []byte(`{"hooks":{"`+event+`":[{"hooks":[`+handler+`]}]}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c.Hooks = hooks
	return opened(t, part(t, c))
}

// outcome triggers an event and describes the result in one line.
func outcome(t testing.TB, s *plugin.Session, event string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	switch event {
	case "PreToolUse":
		v, err := s.BeforeToolCall(ctx, &plugin.ToolCallContext{TurnID: "t", CallID: "c", Tool: "shell", Args: json.RawMessage(`{"command":"ls"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return ofCall(v)
	case "PostToolUse":
		v, err := s.AfterToolCall(ctx, &plugin.ToolResultContext{
			ToolCallContext: plugin.ToolCallContext{TurnID: "t", CallID: "c", Tool: "shell", Args: json.RawMessage(`{"command":"ls"}`)}, Output: protocol.Succeed("x"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return ofCall(v)
	case "UserPromptSubmit", "SessionStart":
		all, err := s.BeforeTurn(ctx, &plugin.TurnContext{TurnID: "t"})
		return ofTurn(all, err)
	case "Stop":
		all, err := s.Checkpoint(ctx, &plugin.CheckpointContext{TurnID: "t", Kind: protocol.BoundaryBeforeCompletion, View: &plugin.View{}})
		return ofTurn(all, err)
	case "StopFailure":
		all, err := s.AfterTurn(ctx, &plugin.TurnSummary{TurnID: "t", Report: &protocol.TurnReport{Outcome: &protocol.TurnOutcome{Kind: protocol.OutcomeProviderError}}})
		return ofTurn(all, err)
	case "PreCompact":
		_, _, err := s.Compact(ctx, &plugin.CompactRequest{View: &plugin.View{}})
		if err != nil {
			return "refused: " + last(err.Error())
		}
		return ""
	}
	t.Fatalf("no seam for %s", event)
	return ""
}

// last is the last line of a text.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func ofCall(v *plugin.ToolVerdict) string {
	var parts []string
	switch {
	case v.Denied:
		parts = append(parts, v.Output.Failure.Code+": "+last(v.Output.Failure.Message))
	case v.Output != nil:
		parts = append(parts, "result "+v.Output.Text)
	case v.Approval != nil:
		parts = append(parts, "asks: "+v.Approval.Reason)
	}
	if v.Args != nil {
		parts = append(parts, "args "+string(v.Args))
	}
	for _, o := range append(v.Messages, v.Effects...) {
		parts = append(parts, ofDirective(o))
	}
	return strings.Join(parts, "; ")
}

func ofTurn(all []plugin.Owned, err error) string {
	if err != nil {
		return "error: " + last(err.Error())
	}
	var parts []string
	for _, o := range all {
		parts = append(parts, ofDirective(o))
	}
	return strings.Join(parts, "; ")
}

func ofDirective(o plugin.Owned) string {
	switch o.Kind {
	case plugin.AbortTurn:
		return o.Code + ": " + last(o.Message)
	case plugin.EnqueueMessages:
		return "says " + last(o.Messages[0].Content)
	case plugin.EmitEvents:
		return "status " + o.Events[0].Key
	}
	return string(o.Kind)
}

// outputs are what a hook may write on stdout, in the order of the columns of the matrix.
var outputs = []struct{ name, text string }{
	{"nothing", ""},
	{"text", "all is well"},
	{"allow", `{"hookSpecificOutput":{"permissionDecision":"allow"}}`},
	{"deny", `{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"WHY"}}`},
	{"ask", `{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"WHY"}}`},
	{"block", `{"decision":"block","reason":"WHY"}`},
	{"broken JSON", `{"decision":"block","reason":"WHY"`},
	{"unknown fields", `{"suppressOutput":true,"decison":"block","later":{"a":[1]}}`},
}

// matrix is what a run says. D is a denial with the reason of its JSON, E one with that of its stderr, and ! a failure.
var matrix = []struct {
	how    string
	stderr bool
	want   [8]string // nothing, text, allow, deny, ask, block, broken JSON, unknown fields
}{
	{"exit 0", false, [8]string{"-", "text", "-", "D", "ask", "D", "!", "-"}},
	{"exit 0", true, [8]string{"-", "text", "-", "D", "ask", "D", "!", "-"}},
	{"exit 1", false, [8]string{"!", "!", "!", "!", "!", "!", "!", "!"}},
	{"exit 1", true, [8]string{"!", "!", "!", "!", "!", "!", "!", "!"}},
	{"exit 2", false, [8]string{"!", "!", "!", "D", "D", "D", "!", "!"}},
	{"exit 2", true, [8]string{"E", "E", "E", "E", "E", "E", "E", "E"}},
	{"exit 126", false, [8]string{"!", "!", "!", "!", "!", "!", "!", "!"}},
	{"exit 126", true, [8]string{"!", "!", "!", "!", "!", "!", "!", "!"}},
	{"exit 127", false, [8]string{"!", "!", "!", "!", "!", "!", "!", "!"}},
	{"exit 127", true, [8]string{"!", "!", "!", "!", "!", "!", "!", "!"}},
	{"kill -9 $$", false, [8]string{"!", "!", "!", "!", "!", "!", "!", "!"}},
	{"kill -9 $$", true, [8]string{"!", "!", "!", "!", "!", "!", "!", "!"}},
}

// comesTo lists the expected outcome of each case at an event, with the default onError.
var comesTo = map[string]map[string]string{
	"PreToolUse":       {"-": "", "text": "", "D": "hook_denied: WHY", "E": "hook_denied: because", "ask": "asks: WHY", "!": "hook_failed"},
	"PostToolUse":      {"-": "", "text": "", "D": "says About the call c of shell: WHY", "E": "says About the call c of shell: because", "ask": "", "!": "status hook_failed"},
	"UserPromptSubmit": {"-": "", "text": "says all is well", "D": "prompt_refused: WHY", "E": "prompt_refused: because", "ask": "", "!": "status hook_failed"},
	"SessionStart":     {"-": "", "text": "says all is well", "D": "status hook_without_effect", "E": "status hook_without_effect", "ask": "", "!": "status hook_failed"},
	"Stop":             {"-": "", "text": "", "D": "says WHY", "E": "says because", "ask": "", "!": "status hook_failed"},
	"StopFailure":      {"-": "", "text": "", "D": "", "E": "", "ask": "", "!": "status hook_failed"},
	"PreCompact":       {"-": "", "text": "", "D": "refused: WHY", "E": "refused: because", "ask": "", "!": ""},
}

const sayScript = `#!/bin/sh
cat >/dev/null
printf '%s' "$2"
printf '%s' "$3" >&2
eval "$1"
`

// quoted is a text as JSON.
func quoted(text string) string {
	data, _ := json.Marshal(text) // a string can be JSON
	return string(data)
}

func TestMatrix(t *testing.T) {
	c := config(t)
	write(t, c.Root, map[string]string{"say": sayScript})
	for event, want := range comesTo {
		t.Run("issue/4-2 whatever a hook of "+event+" says and however it ends", func(t *testing.T) {
			for _, row := range matrix {
				for i, out := range outputs {
					stderr := ""
					if row.stderr {
						stderr = "because"
					}
					handler := fmt.Sprintf(`{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/say","args":[%s,%s,%s]}`, quoted(row.how), quoted(out.text), quoted(stderr))
					got := outcome(t, hooked(t, c, event, handler), event)
					expect := want[row.want[i]]
					if got != expect && !(expect == "hook_failed" && strings.HasPrefix(got, "hook_failed: ")) {
						t.Errorf("%s, with stderr %v and %s: %q, want %q", row.how, row.stderr, out.name, got, expect)
					}
				}
			}
		})
	}
}

func TestHookCannotRun(t *testing.T) {
	c := config(t)
	write(t, c.Root, map[string]string{
		"no-interpreter": "#!/no/such/interpreter\n", "broken.sh": "#!/bin/sh\nif true; then\n", "denied.txt": "echo hello\n",
		"unset.sh": "#!/bin/sh\nset -u\necho $nothing_here\n", "source.sh": "#!/bin/sh\n. /no/such/file\n", "cd.sh": "#!/bin/sh\nset -e\ncd /no/such/dir\n",
		"reason.sh": "#!/bin/sh\nno-such-program-anywhere 2>&2\necho because >&2\nexit 2\n",
	})
	python, _ := exec.LookPath("python3")
	skip.Unless(t, "PYTHON", python != "", "there is no python3")
	cases := []struct{ name, handler string }{
		{"a program that is not there", `{"type":"command","command":"/no/such/program","args":[]}`},
		{"a script that is not there", `{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/missing.sh"}`},
		{"a script that sh cannot open", `{"type":"command","command":"sh ${CLAUDE_PLUGIN_ROOT}/missing.sh"}`},
		{"a script that bash cannot open", `{"type":"command","command":"bash ${CLAUDE_PLUGIN_ROOT}/missing.sh"}`},
		{"a script that python cannot open", `{"type":"command","command":"python3 ${CLAUDE_PLUGIN_ROOT}/missing.py"}`},
		{"a script that perl cannot open", `{"type":"command","command":"perl ${CLAUDE_PLUGIN_ROOT}/missing.pl"}`},
		{"an interpreter that is not there", `{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/no-interpreter"}`},
		{"a file that may not be run", `{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/denied.txt"}`},
		{"a script with a mistake", `{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/broken.sh"}`},
		{"a script with a mistake, read by bash", `{"type":"command","command":"bash ${CLAUDE_PLUGIN_ROOT}/broken.sh"}`},
		{"a line with a mistake", `{"type":"command","command":"if true; then"}`},
		{"a variable that is not set", `{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/unset.sh"}`},
		{"a missing file to read", `{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/source.sh"}`},
		{"a directory that is not there", `{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/cd.sh"}`},
		{"no answer in time", `{"type":"command","command":"sleep 600 & wait","timeout":0.2}`},
		{"a flood", `{"type":"command","command":"head -c 2000000 /dev/zero"}`},
		{"a decision that does not exist", `{"type":"command","command":"echo '{\"decision\":\"maybe\"}'"}`},
		{"an answer for another event", `{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"Setup\",\"permissionDecision\":\"deny\"}}'"}`},
		{"two answers", `{"type":"command","command":"echo '{} {}'"}`},
		{"a field of another type", `{"type":"command","command":"echo '{\"continue\":\"no\"}'"}`},
	}
	for event, want := range comesTo {
		t.Run("issue/4-2 a hook of "+event+" that cannot be run has not decided", func(t *testing.T) {
			for _, x := range cases {
				got, expect := outcome(t, hooked(t, c, event, x.handler), event), want["!"]
				if got != expect && !(expect == "hook_failed" && strings.HasPrefix(got, "hook_failed: ")) {
					t.Errorf("%s: %q, want %q", x.name, got, expect)
				}
			}
		})
	}
	t.Run("issue/4-2 messages of an interpreter are not part of the reason", func(t *testing.T) {
		got := outcome(t, hooked(t, c, "PreToolUse", `{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/reason.sh"}`), "PreToolUse")
		if got != "hook_denied: because" {
			t.Errorf("got %q", got)
		}
	})
}

func TestOnError(t *testing.T) {
	c := config(t)
	for _, x := range []struct{ event, onError, want string }{
		{"PreToolUse", "deny", "hook_failed: the hook hooks/hooks.json:1 failed: it ended with exit code 1: stderr was empty"},
		{"PreToolUse", "allow", "status hook_failed"},
		{"PreToolUse", "fail", "before_tool_call_failed: plugin kit: before_tool_call: the hook hooks/hooks.json:1 failed: it ended with exit code 1: stderr was empty"},
		{"PostToolUse", "allow", "status hook_failed"},
		{"PostToolUse", "fail", "after_tool_call_failed: plugin kit: after_tool_call: the hook hooks/hooks.json:1 failed: it ended with exit code 1: stderr was empty"},
		{"UserPromptSubmit", "deny", "hook_failed: the hook hooks/hooks.json:1 failed: it ended with exit code 1: stderr was empty"},
		{"UserPromptSubmit", "allow", "status hook_failed"},
		{"UserPromptSubmit", "fail", "error: plugin kit: before_turn: the hook hooks/hooks.json:1 failed: it ended with exit code 1: stderr was empty"},
		{"SessionStart", "deny", "hook_failed: the hook hooks/hooks.json:1 failed: it ended with exit code 1: stderr was empty"},
		{"Stop", "fail", "error: plugin kit: checkpoint: the hook hooks/hooks.json:1 failed: it ended with exit code 1: stderr was empty"},
		{"PreCompact", "fail", "refused: plugin kit: compactor: the hook hooks/hooks.json:1 failed: it ended with exit code 1: stderr was empty"},
	} {
		t.Run("issue/4-2 a failure of "+x.event+" has the result that onError sets: "+x.onError, func(t *testing.T) {
			s := hooked(t, c, x.event, `{"type":"command","command":"exit 1","onError":"`+x.onError+`"}`)
			if got := outcome(t, s, x.event); got != x.want {
				t.Errorf("got  %q\nwant %q", got, x.want)
			}
		})
	}
}
