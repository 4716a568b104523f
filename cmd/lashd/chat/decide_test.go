package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

func TestAnswersByLetterAndWord(t *testing.T) {
	approval := []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseReject}
	outcome := []protocol.DecisionChoice{protocol.ChooseTellModel, protocol.ChooseHappened, protocol.ChooseNotHappened, protocol.ChooseRunAgain}
	question := []protocol.DecisionChoice{protocol.ChooseAnswer, protocol.ChooseReject}
	for _, c := range []struct {
		choices []protocol.DecisionChoice
		line    string
		want    protocol.DecisionChoice
	}{
		{approval, "yes", protocol.ChooseAllowOnce}, {approval, "Y", protocol.ChooseAllowOnce}, {approval, "NO", protocol.ChooseReject},
		{approval, "Always", protocol.ChooseAllowAlways}, {approval, "session", protocol.ChooseAllowSession}, {approval, "n", protocol.ChooseReject},
		{approval, "yes, but", ""}, {approval, "", ""}, {approval, "happened", ""},
		{outcome, "didNotRun", protocol.ChooseNotHappened}, {outcome, "t", protocol.ChooseTellModel}, {outcome, "yes", ""},
		{question, "no", ""}, {question, "n", protocol.ChooseReject},
	} {
		if got := Chosen(&protocol.Decision{Choices: c.choices}, c.line); got != c.want {
			t.Errorf("issue/6-4 %q to %v means %q, want %q", c.line, c.choices, got, c.want)
		}
	}
}

func TestArgumentsAreShownOnce(t *testing.T) {
	for _, args := range []string{`{"path":"a.txt","content":"x && <y>"}`, `{"path": "b.txt", "content": "` + strings.Repeat("long ", 100) + `"}`} {
		prompt := fmt.Sprintf("Allow the tool write to run with %s? The plugin guard asks: is it so?", termtext.Brief(json.RawMessage(args)))
		sent, err := json.Marshal(json.RawMessage(args)) // with the escapes of the wire format
		if err != nil {
			t.Fatal(err)
		}
		d := protocol.Decision{Kind: protocol.DecisionApproval, Prompt: prompt, Call: &protocol.ToolCall{CallID: "call_1", Name: "write", Args: sent}}
		u := &ui{talk: newTranscript(), width: 60, height: 20, connected: true}
		u.talk.open = []*protocol.Item{{ID: "itm_c", Kind: protocol.ItemToolCall, CallID: "call_1", Tool: "write", Args: sent}}
		u.talk.decisions = []protocol.Decision{d}
		got := strings.Join(strings.Fields(ansi.Strip(u.View().Content)), " ")
		if n := strings.Count(got, ".txt"); n != 1 || !strings.Contains(got, "Allow this tool call? The plugin guard asks: is it so?") {
			t.Errorf("issue/6-4 the arguments are shown %d times: %s", n, got)
		}
	}
}

func TestApprovalQuestion(t *testing.T) {
	for _, c := range []struct{ name, tool, args, more, want string }{
		{"a shell command", "shell", `{"command":"npm test"}`, "", "Run `npm test`?"},
		{"a reason that a plugin adds", "shell", `{"command":"npm test"}`, " The plugin guard asks: sure?", "Run `npm test`? The plugin guard asks: sure?"},
		{"a command with backquotes", "shell", `{"command":"echo ` + "`id`" + `"}`, "", "Allow this tool call?\n  shell {\"command\":\"echo `id`\"}"},
		{"a command of several lines", "shell", `{"command":"a\nb"}`, "", "Allow this tool call?\n  shell {\"command\":\"a\\nb\"}"},
		{"other arguments", "shell", `{"command":"a","timeoutMs":5}`, "", "Allow this tool call?\n  shell {\"command\":\"a\",\"timeoutMs\":5}"},
		{"a control character", "shell", `{"command":"a\u001b[2J"}`, "", "Run `a\\u001b[2J`?"},
		{"a long command", "shell", `{"command":"` + strings.Repeat("x", 400) + `"}`, " Sure?", "Run `" + strings.Repeat("x", 400) + "`? Sure?"},
		{"another tool", "write", `{"path":"a.txt"}`, "", "Allow this tool call?\n  write {\"path\":\"a.txt\"}"},
	} {
		t.Run("part/8 "+c.name, func(t *testing.T) {
			args := json.RawMessage(c.args)
			prompt := fmt.Sprintf("Allow the tool %s to run with %s?%s", c.tool, termtext.Brief(args), c.more)
			d := &protocol.Decision{Kind: protocol.DecisionApproval, Prompt: prompt, Call: &protocol.ToolCall{Name: c.tool, Args: args}}
			if got := Question(d); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCardSaysWhatAnAnswerCovers(t *testing.T) {
	d := &protocol.Decision{Call: &protocol.ToolCall{Name: "write"}, Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseReject}}
	for _, c := range []struct {
		args    string
		varying []string
		same    string
	}{
		{`{"path":"a"}`, nil, "the same arguments"},
		{`{"path":"a","content":"b"}`, []string{"content", "mode"}, "the same path"},
		{`{"content":"b"}`, []string{"content", "mode"}, "the same arguments, except that content and mode may differ"},
	} {
		d.Call.Args, d.Varying = json.RawMessage(c.args), c.varying
		want := "y Allow once   s Allow for this session   a Always allow in this workspace   n Deny\n  s and a also allow later write calls with " + c.same + "."
		if got := ansi.Strip(card(d, 0, 120)); !strings.HasSuffix(got, want) {
			t.Errorf("issue/6-4 it is %q", got)
		}
	}
}
