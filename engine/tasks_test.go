package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"lashd/engine"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

func command(script string, recovery protocol.TaskRecovery) protocol.TaskSpec {
	return protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: recovery, Command: &protocol.TaskShell{Script: script}}
}

func (d *daemon) task(t testing.TB, session protocol.SessionID, id protocol.TaskID, spec protocol.TaskSpec) protocol.Task {
	t.Helper()
	return must[*protocol.TaskResult](t)(d.Tasks.Start(t.Context(), "cli_a", &protocol.TaskStartParams{SessionID: session, TaskID: id, Spec: spec})).Task
}

func (d *daemon) readTask(t testing.TB, session protocol.SessionID, id protocol.TaskID) *protocol.TaskReadResult {
	t.Helper()
	return must[*protocol.TaskReadResult](t)(d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: session, TaskID: id}}))
}

func (d *daemon) waitTasks(t testing.TB, p *protocol.TaskWaitParams) *protocol.TaskWaitResult {
	t.Helper()
	return must[*protocol.TaskWaitResult](t)(d.Tasks.Wait(t.Context(), "cli_a", p))
}

// ended waits for the end of a task.
func (d *daemon) ended(t testing.TB, session protocol.SessionID, id protocol.TaskID) protocol.Task {
	t.Helper()
	return d.waitTasks(t, &protocol.TaskWaitParams{SessionID: session, TaskIDs: []protocol.TaskID{id}}).Settled[0]
}

func (d *daemon) output(t testing.TB, session protocol.SessionID, id protocol.TaskID) string {
	t.Helper()
	r := must[*protocol.TaskOutputResult](t)(d.Tasks.Output(t.Context(), &protocol.TaskOutputParams{TaskParams: protocol.TaskParams{SessionID: session, TaskID: id}}))
	return r.Text
}

// outputHas waits until a task's output contains a text.
func (d *daemon) outputHas(t testing.TB, session protocol.SessionID, id protocol.TaskID, want string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(d.output(t, session, id), want) })
}

func eventKinds(events []protocol.TaskEvent) string {
	var all []string
	for _, e := range events {
		all = append(all, string(e.Kind))
	}
	return strings.Join(all, " ")
}

func TestTaskCommands(t *testing.T) {
	d := start(t, setup{model: replies(scripted.Reply{Text: "noted"})})
	s := d.session(t)
	t.Run("runtime/B01 a command that ends by itself has an outcome and keeps its output", func(t *testing.T) {
		begun := d.task(t, s, "", command("echo out; echo err >&2; exit 3", protocol.RecoverOwner))
		if begun.State != protocol.TaskRunning || begun.Attempt != 1 {
			t.Errorf("the task starts as %+v", begun)
		}
		got := d.ended(t, s, begun.ID)
		if got.State != protocol.TaskFailed || got.Outcome.Kind != protocol.TaskExited || *got.Outcome.ExitCode != 3 {
			t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
		}
		if out := d.output(t, s, begun.ID); out != "out\nerr\n" {
			t.Errorf("output %q", out)
		}
		if k := eventKinds(d.readTask(t, s, begun.ID).Events); k != "created started ended" {
			t.Errorf("events: %s", k)
		}
	})
	t.Run("runtime/B01 the same id and spec is the same task, another spec a conflict", func(t *testing.T) {
		spec := command("sleep 600", protocol.RecoverOwner)
		first := d.task(t, s, "tsk_once", spec)
		again := must[*protocol.TaskResult](t)(d.Tasks.Start(t.Context(), "", &protocol.TaskStartParams{SessionID: s, TaskID: "tsk_once", Spec: spec}))
		if !again.Existing || again.Task.CreatedAtMs != first.CreatedAtMs || again.Task.Ordinal != 2 {
			t.Errorf("started again, the task is %+v", again)
		}
		_, err := d.Tasks.Start(t.Context(), "", &protocol.TaskStartParams{SessionID: s, TaskID: "tsk_once", Spec: command("true", protocol.RecoverOwner)})
		if !errors.As(err, new(*engine.TaskConflictError)) {
			t.Errorf("another spec: %v", err)
		}
		r := must[*protocol.TaskResult](t)(d.Tasks.Cancel(t.Context(), "cli_b", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: "tsk_once"}, Reason: "enough"}))
		if r.Task.State != protocol.TaskCancelRequested {
			t.Errorf("after the request to cancel the task is %s", r.Task.State)
		}
		if got := d.ended(t, s, "tsk_once"); got.State != protocol.TaskCancelled || got.Outcome.Kind != protocol.TaskStopped || got.Outcome.By != "cli_b" || got.Outcome.Message != "enough" {
			t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
		}
		_, err = d.Tasks.Cancel(t.Context(), "cli_b", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: "tsk_once"}})
		if !errors.As(err, new(*engine.TaskEndedError)) {
			t.Errorf("cancelled again: %v", err)
		}
	})
	t.Run("runtime/B01 a task that finishes although it was cancelled is reported as finished", func(t *testing.T) {
		task := d.task(t, s, "", command("trap 'echo finished; exit 0' TERM; echo ready; while :; do sleep 0.02; done", protocol.RecoverOwner))
		d.outputHas(t, s, task.ID, "ready")
		must[*protocol.TaskResult](t)(d.Tasks.Cancel(t.Context(), "cli_b", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: task.ID}}))
		if got := d.ended(t, s, task.ID); got.State != protocol.TaskCompleted || got.Outcome.Kind != protocol.TaskExited || *got.Outcome.ExitCode != 0 {
			t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
		}
	})
	t.Run("runtime/K02 input that is written to a command reaches it", func(t *testing.T) {
		task := d.task(t, s, "", command("cat", protocol.RecoverOwner))
		for _, sig := range []protocol.TaskSignalParams{{Name: "stdin", Payload: []byte(`{"text":"hello\n"}`)}, {Name: "closeStdin"}} {
			sig.TaskParams = protocol.TaskParams{SessionID: s, TaskID: task.ID}
			must[*protocol.TaskResult](t)(d.Tasks.Signal(t.Context(), "cli_a", &sig))
		}
		if got := d.ended(t, s, task.ID); got.State != protocol.TaskCompleted || d.output(t, s, task.ID) != "hello\n" {
			t.Errorf("the task ended as %s with %q", got.State, d.output(t, s, task.ID))
		}
	})
	t.Run("runtime/B06 the end of a task that wakes its session causes one turn", func(t *testing.T) {
		spec := command("exit 4", protocol.RecoverOwner)
		spec.Label, spec.Ended = "the build", &protocol.TaskWake{}
		d.ended(t, s, d.task(t, s, "", spec).ID)
		must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: s}))
		turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: s})).Data
		if len(turns) != 1 || turns[0].State != protocol.TurnCompleted {
			t.Errorf("turns: %+v", turns)
		}
	})
	t.Run("runtime/B01 a task that exceeds its timeout is stopped and failed", func(t *testing.T) {
		spec := command("sleep 600", protocol.RecoverOwner)
		spec.TimeoutMs = 50
		got := d.ended(t, s, d.task(t, s, "", spec).ID)
		if got.State != protocol.TaskFailed || got.Outcome.Kind != protocol.TaskStopped || got.Outcome.Code != "timeout" {
			t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
		}
	})
}

func TestTaskRecovery(t *testing.T) {
	for _, c := range []struct {
		recovery protocol.TaskRecovery
		state    protocol.TaskState
		output   string
	}{
		{protocol.RecoverOwner, protocol.TaskAbandoned, "begun\n"},
		{protocol.RecoverRerun, protocol.TaskCompleted, "begun\nagain\n"},
	} {
		t.Run("runtime/B02 after a restart of the daemon, "+string(c.recovery), func(t *testing.T) {
			d := start(t, setup{model: replies()})
			s := d.session(t)
			task := d.task(t, s, "", command("[ -e flag ] && echo again && exit 0; touch flag; echo begun; sleep 600", c.recovery))
			d.outputHas(t, s, task.ID, "begun")
			d = d.restart(t, nil)
			got := d.ended(t, s, task.ID)
			if got.State != c.state || d.output(t, s, task.ID) != c.output {
				t.Errorf("the task is %s %+v, with %q", got.State, got.Outcome, d.output(t, s, task.ID))
			}
			if c.state == protocol.TaskAbandoned && (got.Outcome.Evidence == nil || got.Outcome.Evidence.Writer != protocol.WriterDrain) {
				t.Errorf("evidence %+v", got.Outcome.Evidence)
			}
		})
	}
	t.Run("runtime/B02 an external task stays as it is until a client completes it", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		s := d.session(t)
		task := d.task(t, s, "", protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal})
		d = d.restart(t, nil)
		if got := d.readTask(t, s, task.ID).Task; got.State != protocol.TaskRunning {
			t.Errorf("the task is %s", got.State)
		}
		r := must[*protocol.TaskResult](t)(d.Tasks.Complete(t.Context(), "cli_b", &protocol.TaskCompleteParams{
			TaskParams: protocol.TaskParams{SessionID: s, TaskID: task.ID}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone, Value: []byte(`7`)},
		}))
		if r.Task.State != protocol.TaskCompleted || string(r.Task.Outcome.Value) != "7" {
			t.Errorf("the task is %+v", r.Task)
		}
	})
}

func TestTaskTransfer(t *testing.T) {
	d := start(t, setup{model: replies()})
	a, b := d.session(t), d.session(t)
	task := d.task(t, a, "tsk_x", command("echo one; read x; echo $x", protocol.RecoverOwner))
	d.outputHas(t, a, task.ID, "one")
	move := func(ids ...protocol.TaskID) error {
		_, err := d.Tasks.Transfer(context.Background(), &protocol.TaskTransferParams{SessionID: a, TaskIDs: ids, To: b})
		return err
	}
	t.Run("plugin/HC-14 runtime/B01 a task that ends during a transfer reports its end once the transfer is complete or undone", func(t *testing.T) {
		task := d.task(t, a, "tsk_way", command("echo ready; read x; echo over", protocol.RecoverOwner))
		d.outputHas(t, a, task.ID, "ready")
		back, err := d.HandOver(t.Context(), a, task.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Tasks.Cancel(t.Context(), "", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: a, TaskID: task.ID}})
		if !errors.Is(err, engine.ErrTaskLeaving) {
			t.Errorf("cancelled on its way: %v", err)
		}
		must[*protocol.TaskResult](t)(d.Tasks.Signal(t.Context(), "cli_a", &protocol.TaskSignalParams{
			TaskParams: protocol.TaskParams{SessionID: a, TaskID: task.ID}, Name: "stdin", Payload: []byte(`{"text":"go\n"}`),
		}))
		d.outputHas(t, a, task.ID, "over")
		time.Sleep(300 * time.Millisecond) // long enough for the command to end
		if got := d.readTask(t, a, task.ID).Task; got.State != protocol.TaskRunning {
			t.Errorf("during the transfer the task is %s", got.State)
		}
		if err := back(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return d.readTask(t, a, task.ID).Task.State == protocol.TaskCompleted })
	})
	t.Run("plugin/HC-14 a conflict of ids moves no task", func(t *testing.T) {
		d.task(t, a, "tsk_y", command("sleep 600", protocol.RecoverOwner))
		d.task(t, b, "tsk_y", command("sleep 600", protocol.RecoverOwner))
		if move("tsk_x", "tsk_y") == nil {
			t.Error("the transfer was not rejected")
		}
		if got := d.readTask(t, a, "tsk_x").Task; got.SessionID != a {
			t.Errorf("a task of the transfer is now of %s", got.SessionID)
		}
	})
	t.Run("plugin/HC-14 a transferred task keeps running, and the session that started it still sees it", func(t *testing.T) {
		if err := move("tsk_x", "tsk_none"); err != nil {
			t.Fatal(err)
		}
		if got := d.readTask(t, a, "tsk_x").Task; got.SessionID != b {
			t.Errorf("the task belongs to %s", got.SessionID)
		}
		must[*protocol.TaskResult](t)(d.Tasks.Signal(t.Context(), "cli_a", &protocol.TaskSignalParams{
			TaskParams: protocol.TaskParams{SessionID: b, TaskID: "tsk_x"}, Name: "stdin", Payload: []byte(`{"text":"two\n"}`),
		}))
		if got := d.ended(t, b, "tsk_x"); got.State != protocol.TaskCompleted || d.output(t, b, "tsk_x") != "one\ntwo\n" {
			t.Errorf("the task ended as %s with %q", got.State, d.output(t, b, "tsk_x"))
		}
	})
}

// eventually waits for a condition that another process fulfils.
func eventually(t testing.TB, f func() bool) {
	t.Helper()
	for range 6000 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("timed out waiting for the condition")
}
