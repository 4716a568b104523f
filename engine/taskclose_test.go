package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

const forever = "echo begun; sleep 1000"

func endless(p protocol.TaskClosePolicy) protocol.TaskSpec {
	s := command(forever, protocol.RecoverOwner)
	s.Close = p
	return s
}

func (d *daemon) child(t *testing.T, parent protocol.SessionID) protocol.SessionID {
	t.Helper()
	return must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
		Cwd: t.TempDir(), Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: parent},
	})).SessionID
}

// threeTasks starts three tasks of a session, each with another close policy.
func (d *daemon) threeTasks(t *testing.T, s protocol.SessionID, before string) {
	t.Helper()
	for _, p := range []protocol.TaskClosePolicy{protocol.CloseKeep, protocol.CloseCancel, protocol.CloseTransfer} {
		id := protocol.TaskID(before + string(p))
		spec := endless(p)
		spec.Ended = &protocol.TaskWake{}
		d.task(t, s, id, spec)
		d.outputHas(t, s, id, "begun")
	}
}

func (d *daemon) owner(t *testing.T, s protocol.SessionID, id protocol.TaskID) protocol.SessionID {
	t.Helper()
	got := d.readTask(t, s, id).Task
	if got.State != protocol.TaskRunning {
		t.Errorf("task %s is %s %+v", id, got.State, got.Outcome)
	}
	return got.SessionID
}

// outputs counts the output files of tasks.
func (d *daemon) outputs(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(d.setup.dir, "tasks"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(files)
}

func TestTasksOfClosedSessions(t *testing.T) {
	d := start(t, setup{dir: t.TempDir(), model: replies()})
	closes := func(id protocol.SessionID) {
		must[*protocol.SeqResult](t)(d.Sessions.Close(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
	}
	t.Run("runtime/B09 closing a session keeps, cancels or transfers each task as its policy says", func(t *testing.T) {
		parent := d.session(t)
		s := d.child(t, parent)
		d.threeTasks(t, s, "a-")
		closes(s)
		if got := d.ended(t, s, "a-cancel"); got.State != protocol.TaskCancelled || got.Outcome.By != "internal:sessionClosed" {
			t.Errorf("the cancelled task is %s %+v", got.State, got.Outcome)
		}
		if keep, gone := d.owner(t, s, "a-keep"), d.owner(t, parent, "a-transfer"); keep != s || gone != parent {
			t.Errorf("the kept task belongs to %s, the transferred one to %s", keep, gone)
		}
		turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: s})).Data
		if len(turns) != 0 {
			t.Errorf("closing the session wakes it: %+v", turns)
		}
		closes(s) // again
	})
	t.Run("runtime/B09 a task to transfer keeps running if there is no parent session", func(t *testing.T) {
		s := d.session(t)
		d.threeTasks(t, s, "b-")
		closes(s)
		d.ended(t, s, "b-cancel")
		if got := d.owner(t, s, "b-transfer"); got != s {
			t.Errorf("the task belongs to %s", got)
		}
	})
	t.Run("runtime/B09 deleting a session transfers its surviving tasks to the parent", func(t *testing.T) {
		parent := d.session(t)
		s := d.child(t, parent)
		d.threeTasks(t, s, "c-")
		before := d.outputs(t)
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: s}))
		if d.owner(t, parent, "c-keep") != parent || d.owner(t, parent, "c-transfer") != parent {
			t.Error("they are not its own")
		}
		if n := d.outputs(t); n != before-1 {
			t.Errorf("there are %d outputs, and were %d", n, before)
		}
	})
	t.Run("runtime/B09 deleting a session without a parent ends all its tasks, with processes and outputs", func(t *testing.T) {
		s := d.session(t)
		before := d.outputs(t)
		d.threeTasks(t, s, "d-")
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: s}))
		if n := d.outputs(t); n != before {
			t.Errorf("there are %d outputs, and were %d", n, before)
		}
		if n := len(must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{Live: true})).Data); n != 6 {
			t.Errorf("%d tasks are live; want two of each but the last", n)
		}
	})
}

func TestPrunedTasks(t *testing.T) {
	whole := t // its daemons live until the parent test ends
	d := start(t, setup{dir: t.TempDir(), model: replies()})
	s := d.session(t)
	spec := command("echo out; exit 3", protocol.RecoverOwner)
	d.task(t, s, "tsk_over", spec)
	d.ended(t, s, "tsk_over")
	d.task(t, s, "tsk_live", endless(""))
	prune := func(before int64) []protocol.Task {
		t.Helper()
		return must[*protocol.TasksResult](t)(d.Tasks.Prune(t.Context(), &protocol.TaskPruneParams{SessionID: s, BeforeMs: before})).Data
	}
	t.Run("runtime/B08 live tasks and tasks that ended later are not pruned", func(t *testing.T) {
		if got := prune(1); len(got) != 0 {
			t.Errorf("pruned: %+v", got)
		}
	})
	t.Run("runtime/B08 the id, outcome and spec fingerprint of a pruned task survive a restart", func(t *testing.T) {
		list := must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: s}))
		if got := prune(0); len(got) != 1 || got[0].ID != "tsk_over" {
			t.Errorf("pruned: %+v", got)
		}
		changed := must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: s, Cursor: list.NextCursor})).Data
		if len(changed) != 1 || !changed[0].Pruned {
			t.Errorf("followers see %+v", changed)
		}
		d = d.restart(whole, nil)
		got := d.readTask(t, s, "tsk_over")
		if !got.Task.Pruned || got.Task.State != protocol.TaskFailed || *got.Task.Outcome.ExitCode != 3 || got.Task.Spec.Command != nil || len(got.Events) != 0 {
			t.Errorf("the pruned task is %+v", got)
		}
		if out := d.output(t, s, "tsk_over"); out != "" {
			t.Errorf("its output is %q", out)
		}
		again := must[*protocol.TaskResult](t)(d.Tasks.Start(t.Context(), "", &protocol.TaskStartParams{SessionID: s, TaskID: "tsk_over", Spec: spec}))
		if !again.Existing {
			t.Errorf("started again, the task is %+v", again)
		}
		if _, err := d.Tasks.Start(t.Context(), "", &protocol.TaskStartParams{SessionID: s, TaskID: "tsk_over", Spec: endless("")}); err == nil {
			t.Error("another spec is taken")
		}
		if got := prune(0); len(got) != 1 || got[0].ID != "tsk_live" { // the restart abandoned it
			t.Errorf("pruned then: %+v", got)
		}
	})
	t.Run("runtime/B08 the next start removes an output that a crash left of a deleted task", func(t *testing.T) {
		d.task(t, s, "tsk_kept", spec)
		d.ended(t, s, "tsk_kept")
		if err := os.WriteFile(filepath.Join(d.setup.dir, "tasks", "left.out"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		d = d.restart(whole, nil)
		eventually(t, func() bool { return d.outputs(t) == 1 })
		if out := d.output(t, s, "tsk_kept"); out != "out\n" {
			t.Errorf("the output of an existing task is %q", out)
		}
	})
}

func TestTasksOfTurns(t *testing.T) {
	begins := toolFunc{name: "begin", run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
		for _, end := range []protocol.TaskParentEnd{protocol.ParentEndDetach, protocol.ParentEndCancel} {
			spec := command(forever, protocol.RecoverOwner)
			spec.ParentEnd, spec.Ended = end, &protocol.TaskWake{}
			if _, err := plugin.ForTool(call).Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: protocol.TaskID(end), Spec: spec}); err != nil {
				return tool.Result{}, err
			}
		}
		return tool.Result{Output: protocol.Succeed("begun")}, nil
	}}
	d := start(t, setup{model: replies(calls("begin"), scripted.Reply{Text: "done"}), tools: []tool.Provider{begins}})
	s := d.session(t)
	report := d.turn(t, s, "go")
	t.Run("runtime/B02 when the turn that started a task ends, the task is cancelled or notified", func(t *testing.T) {
		asked, alone := d.readTask(t, s, "cancel"), d.readTask(t, s, "detach")
		if asked.Task.CancelRequested == nil || asked.Task.CancelRequested.By != "internal:parentEnd" || asked.Task.Origin.TurnID != report.TurnID {
			t.Errorf("the cancelled task is %+v", asked.Task)
		}
		if k := eventKinds(alone.Events); k != "created started callerDeparted" || alone.Task.State != protocol.TaskRunning {
			t.Errorf("the notified task is %s: %s", alone.Task.State, k)
		}
		if got := d.ended(t, s, "cancel"); got.State != protocol.TaskCancelled || got.Outcome.By != "internal:parentEnd" {
			t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
		}
		must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: s}))
		if turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: s})).Data; len(turns) != 1 {
			t.Errorf("there were %d turns, want only the first: the end of a turn must not wake the session", len(turns))
		}
	})
}
