package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// refusedTo are the words with which what the calls of a turn want is refused, in order; empty: it is done.
func refusedTo(r *protocol.TurnReport) (all []protocol.IntentRefusal) {
	for _, c := range r.ToolCalls {
		for _, out := range c.Output.Intents {
			all = append(all, out.Refused)
		}
	}
	return all
}

// TestIntentsOfOneCall has intents of one call for one task: start, signal, cancel. A second call starts the task again, another task under the same id and an impossible one, and signals a missing task.
func TestIntentsOfOneCall(t *testing.T) {
	begin := watch("tsk_w")
	begin.StartTask.Spec.Signals = []protocol.TaskSignalType{{Name: "poke"}}
	poke := func(id protocol.TaskID, name string) protocol.ToolIntent {
		return protocol.ToolIntent{SignalTask: &protocol.SignalTaskIntent{TaskID: id, Name: name}}
	}
	cancel := func(id protocol.TaskID) protocol.ToolIntent {
		return protocol.ToolIntent{CancelTask: &protocol.CancelTaskIntent{TaskID: id, Reason: "enough"}}
	}
	other := watch("tsk_w")
	other.StartTask.Spec.Label = "another"
	impossible := protocol.ToolIntent{StartTask: &protocol.StartTaskIntent{TaskID: "tsk_n", Spec: protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverOwner}}}
	none := protocol.IntentNoTask
	d := start(t, setup{
		model: replies(calls("first"), calls("again"), scripted.Reply{Text: "done"}),
		tools: []tool.Provider{
			wanting("first", begin, poke("tsk_w", "poke"), poke("tsk_w", "prod"), cancel("tsk_w"), tick("tsk_w", `{"n":1}`), tick("tsk_w", `{"m":1}`)),
			wanting("again", begin, other, impossible, poke("tsk_none", "poke"), cancel("tsk_none"), tick("tsk_none", `{"n":1}`)),
		},
	})
	id := d.session(t)
	got := refusedTo(d.turn(t, id, "go"))
	want := []protocol.IntentRefusal{"", "", protocol.IntentInvalid, "", "", protocol.IntentInvalid, "", protocol.IntentConflict, protocol.IntentInvalid, none, none, none}
	if !slices.Equal(got, want) {
		t.Errorf("outside/29 refused are %q, want %q", got, want)
	}
}

// TestTaskCancelledAtOnce has a call start a command and cancel it. It is over then, and does not run. TestCancelTasks of package live forces
// the order that matters: the attempt knows of its end before it begins.
func TestTaskCancelledAtOnce(t *testing.T) {
	dir := t.TempDir()
	begin := protocol.ToolIntent{StartTask: &protocol.StartTaskIntent{TaskID: "tsk_c", Spec: protocol.TaskSpec{
		Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "echo x > ran"},
	}}}
	cancel := protocol.ToolIntent{CancelTask: &protocol.CancelTaskIntent{TaskID: "tsk_c", Reason: "enough"}}
	d := start(t, setup{cwd: dir, model: replies(calls("both"), scripted.Reply{Text: "done"}), tools: []tool.Provider{wanting("both", begin, cancel)}})
	id := d.session(t)
	if got := refusedTo(d.turn(t, id, "go")); !slices.Equal(got, []protocol.IntentRefusal{"", ""}) {
		t.Errorf("outside/29 refused are %q", got)
	}
	got := d.ended(t, id, "tsk_c")
	if _, err := os.Stat(filepath.Join(dir, "ran")); got.State != protocol.TaskCancelled || !os.IsNotExist(err) {
		t.Errorf("outside/29 it ended as %s, and of what it makes there is %v", got.State, err)
	}
}

// TestIntentsOfAToolThatIsGone restarts the daemon without the tool of a call whose result came while it stopped. What the call wants is done.
func TestIntentsOfAToolThatIsGone(t *testing.T) {
	called := make(chan struct{})
	late := toolFunc{name: "late", run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
		close(called)
		<-ctx.Done()
		return tool.Result{Output: protocol.Succeed("late"), Intents: []protocol.ToolIntent{watch("tsk_w")}}, nil
	}}
	d := start(t, setup{model: replies(calls("late"), scripted.Reply{Text: "done"}), tools: []tool.Provider{late}})
	turn := d.begin(t, d.session(t), "go").TurnID
	<-called
	d = d.restart(t, func(s *setup) { s.tools = nil })
	if got := refusedTo(d.wait(t, turn)); !slices.Equal(got, []protocol.IntentRefusal{""}) {
		t.Errorf("outside/29 refused are %q", got)
	}
}

// TestIntentsOfACancelledTurn has a call with intents after its turn was cancelled. Invalid intents are reported as invalid.
func TestIntentsOfACancelledTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := toolFunc{name: "late", run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{Output: protocol.Succeed("late"), Intents: []protocol.ToolIntent{{}, watch("tsk_late")}}, nil
		}}
		d := start(t, setup{model: replies(calls("late")), tools: []tool.Provider{late}})
		turn := d.begin(t, d.session(t), "go").TurnID
		synctest.Wait()
		d.interrupt(t, turn)
		if got := refusedTo(d.wait(t, turn)); !slices.Equal(got, []protocol.IntentRefusal{protocol.IntentMalformed, protocol.IntentTurnOver}) {
			t.Errorf("outside/29 refused are %q", got)
		}
	})
}
