package chat

import (
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/rpc/protocol"
)

func TestRefusedCallRunsOnceOutside(t *testing.T) {
	c := &calls{}
	u := &ui{ctx: t.Context(), session: c, talk: newTranscript(), width: 100, height: 30, connected: true}
	u.talk.session.ID = "ses_1"
	ctrl := func(letter rune) {
		cmd := u.Update(tea.KeyPressMsg{Code: letter, Mod: tea.ModCtrl})
		if cmd == nil {
			return
		}
		for _, one := range cmd().(tea.BatchMsg) {
			one()
		}
	}
	ctrlR := func() { ctrl('r') }
	refused := item("itm_c", "", protocol.ItemToolCall)
	refused.Tool, refused.Args = "shell", []byte(`{"command":"npm i"}`)
	refused.Output = &protocol.ToolOutput{Refusal: &protocol.SandboxRefusal{What: "The command has no network.", Retry: []byte(`{"command":"npm i","outside":true}`)}}
	ctrlR()
	u.talk.apply(protocol.Event{Type: protocol.EventItemCompleted, Item: refused})
	if got := shown(u); !strings.HasPrefix(got, "  The sandbox refused a call. The command has no network. Ctrl-R runs it once outside: npm i\n─ idle") {
		t.Errorf("part/11 it shows\n%s", got)
	}
	ctrlR()
	ctrlR()
	if len(c.made) != 1 || !strings.HasSuffix(c.made[0], `"sessionId":"ses_1","name":"shell","args":{"command":"npm i","outside":true},"tell":true}`) {
		t.Errorf("part/11 it calls %q", c.made)
	}
	if got := shown(u); strings.Contains(got, "Ctrl-R") {
		t.Errorf("part/11 after the run it shows\n%s", got)
	}
	refused.ID = "itm_e"
	refused.Output.Refusal = &protocol.SandboxRefusal{
		What: "The sandbox refused a.test (why).", Retry: []byte(`{"command":"npm i","outside":true}`), Tool: "start_command",
		WithHosts: &protocol.HostsRetry{Hosts: []string{"a.test", "b.test"}, Retry: []byte(`{"command":"npm i","hosts":["a.test","b.test"]}`)},
	}
	u.talk.apply(protocol.Event{Type: protocol.EventItemCompleted, Item: refused})
	u.width = 160
	if got := shown(u); !strings.HasPrefix(got, "  The sandbox refused a call. The sandbox refused a.test (why). Ctrl-R runs it once with a.test, b.test, Ctrl-O outside: npm i\n─ idle") {
		t.Errorf("part/11 for a call that lacks hosts it shows\n%s", got)
	}
	ctrlR()
	if len(c.made) != 2 || !strings.HasSuffix(c.made[1], `"name":"start_command","args":{"command":"npm i","hosts":["a.test","b.test"]},"tell":true}`) {
		t.Errorf("part/11 with hosts it calls %q", c.made)
	}
	refusal := refused.Output.Refusal
	u.talk.apply(protocol.Event{Type: protocol.EventTaskCompleted, Task: &protocol.Task{ID: "tsk_1", Outcome: &protocol.TaskOutcome{Refusal: refusal}}})
	ctrl('o')
	if len(c.made) != 3 || !strings.HasSuffix(c.made[2], `"name":"start_command","args":{"command":"npm i","outside":true},"tell":true}`) {
		t.Errorf("part/11 outside it calls %q", c.made)
	}
	refused.ID, refused.Output.Refusal = "itm_d", &protocol.SandboxRefusal{What: "x", Retry: []byte(`{}`)}
	u.talk.apply(protocol.Event{Type: protocol.EventItemCompleted, Item: refused})
	u.talk.apply(protocol.Event{Type: protocol.EventTurnStarted, TurnID: "trn_2"})
	if got := shown(u); strings.Contains(got, "Ctrl-R") {
		t.Errorf("part/11 in the next turn it shows\n%s", got)
	}
}

func TestResultOfAnOwnCallIsShownOnce(t *testing.T) {
	wake := func(id, cause, text string) protocol.Event {
		w := item(id, text, protocol.ItemNotice)
		w.Origin = &protocol.Origin{Kind: protocol.OriginProcess, Cause: &protocol.TurnCause{ID: cause}}
		return protocol.Event{Type: protocol.EventItemCompleted, Item: w}
	}
	made := func() *outgoing {
		p := protocol.ToolCallParams{Name: "shell", Args: []byte(`{"command":"ls"}`)}
		return &outgoing{method: "tool/call", params: p, result: &protocol.ToolCallResult{CallID: "c1", Output: protocol.ToolOutput{Status: protocol.OutputSuccess, Text: "the result\n[Exit code 0.]\n", Value: []byte(`{"exitCode":0}`)}}}
	}
	own, other, task := wake("itm_1", "call:c1", "own"), wake("itm_2", "call:c2", "other"), wake("itm_3", "task:tsk_1", "task")
	for name, c := range map[string]struct {
		before, after []protocol.Event // the answer to the call
		err           error
		want          string
	}{
		"wake after the answer":                     {nil, []protocol.Event{own, other, task}, nil, "✓ Ran ls · 0 ms · the result||· Woken: other||· Woken: task"},
		"wake before the answer":                    {[]protocol.Event{other, own, task}, nil, nil, "· Woken: task||✓ Ran ls · 0 ms · the result||· Woken: other"},
		"the call fails, so that the wake is shown": {[]protocol.Event{other}, nil, errors.New("no"), "· Woken: other||✗ · no"},
	} {
		t.Run("part/11 "+name, func(t *testing.T) {
			u := &ui{ctx: t.Context(), session: &calls{}, talk: newTranscript(), width: 80, connected: true}
			o := made()
			u.ask(o)
			u.happened(eventsMsg{events: c.before})
			u.sent(sentMsg{o, c.err})
			u.happened(eventsMsg{events: append(c.after, protocol.Event{Type: protocol.EventTurnAccepted, TurnID: "trn_1", Causes: []protocol.TurnCause{{}}, Input: said("own")})})
			if got := ansi.Strip(strings.Join(u.paper.take(), "|")); got != c.want {
				t.Errorf("it shows\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestCallOfASubagentIsOffered(t *testing.T) {
	refused := func(turn protocol.TurnID, command string) protocol.Item {
		return protocol.Item{TurnID: turn, Tool: "shell", Kind: protocol.ItemToolCall, Output: &protocol.ToolOutput{Refusal: &protocol.SandboxRefusal{What: "x", Retry: []byte(`{"command":"` + command + `"}`)}}}
	}
	items := []protocol.Item{refused("trn_1", "old"), refused("trn_1", "new"), {TurnID: "trn_1", Kind: protocol.ItemAgentMessage}, refused("trn_2", "other")}
	got := newestRefused(items, "trn_1")
	if got == nil || got.command != "new" || got.tool != "shell" || newestRefused(items, "trn_3") != nil {
		t.Fatalf("part13/7 the newest call is %+v", got)
	}
	u := &ui{talk: newTranscript(), width: 80}
	u.talk.session.ID = "ses_1"
	refusedMsg{"ses_2", got}.use(u)
	if u.talk.refused != nil {
		t.Error("part13/7 a call of another session is offered")
	}
	if (refusedMsg{"ses_1", got}).use(u); u.talk.refused != got {
		t.Error("part13/7 the call is not offered")
	}
}
