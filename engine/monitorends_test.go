package engine_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func TestMonitorEnds(t *testing.T) {
	d := start(t, setup{model: replies()})
	for name, c := range map[string]struct {
		spec    protocol.MonitorSpec
		state   protocol.MonitorState
		message string
	}{
		"with 0":           {protocol.MonitorSpec{Command: "exit 0"}, protocol.MonitorExited, "exited with code 0"},
		"with 3":           {protocol.MonitorSpec{Command: "exit 3"}, protocol.MonitorFailed, "exited with code 3"},
		"by a signal":      {protocol.MonitorSpec{Command: "kill -KILL $$"}, protocol.MonitorFailed, "ended by SIGKILL"},
		"because it takes": {protocol.MonitorSpec{Command: "trap '' TERM; sleep 600 & wait; sleep 600", TimeoutMs: 50}, protocol.MonitorFailed, "stopped: the task exceeded its timeout of 50 ms"},
	} {
		t.Run("plugin/MN-05 a monitor that ends "+name, func(t *testing.T) {
			w := d.watched(t)
			c.spec.ID = "m"
			w.start(c.spec)
			got := w.is("m", c.state)
			if got.Armed || (c.state == protocol.MonitorFailed) != (got.LastError == c.message) {
				t.Errorf("it is %+v", got)
			}
			told := w.take()
			if len(told) != 1 || told[0].State != c.state || told[0].Message != c.message {
				t.Errorf("told of %+v", told)
			}
		})
	}
	t.Run("plugin/MN-05 a monitor that cannot start fails", func(t *testing.T) {
		w := start(t, setup{model: replies(), plugins: []plugin.Factory{declaring("p", protocol.MonitorSpec{ID: "a", Command: "true", Cwd: "nowhere", ArmOn: protocol.ArmSession})}}).watched(t)
		if got := w.is("p:a", protocol.MonitorFailed); got.Armed || !strings.HasPrefix(got.LastError, "not_started") {
			t.Errorf("it is %+v", got)
		}
	})
	t.Run("plugin/MN-06 stopping a monitor ends all its processes, also those that ignore signals", func(t *testing.T) {
		w := d.watched(t)
		w.start(protocol.MonitorSpec{ID: "m", Command: `sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & wait`})
		eventually(t, func() bool { return len(w.told) > 0 || len(w.take()) > 0 })
		grandchild := w.told[0].Message
		if !lives(grandchild) {
			t.Fatal("it has started nothing")
		}
		if got := w.stop("m"); got.State != protocol.MonitorStopped || got.Armed {
			t.Errorf("stopped it is %+v", got)
		}
		eventually(t, func() bool { return !lives(grandchild) })
		w.take()
		if last := w.told[len(w.told)-1]; last.State != protocol.MonitorStopped || last.Message != "stopped by cli_a" {
			t.Errorf("told of %+v", last)
		}
	})
}

// lives reports whether a process runs; a zombie does not.
func lives(pid string) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func TestMonitorRestore(t *testing.T) {
	again, once := follow("again"), follow("once")
	again.Restart = true
	t.Run("plugin/MN-07 after a restart of the daemon monitors with restart run again and others are idle", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		w := d.watched(t)
		w.start(again)
		w.start(once)
		w.daemon = d.restart(t, nil)
		eventually(t, func() bool { return w.readTask(t, w.id, "monitor:again:1").Task.State == protocol.TaskAbandoned })
		// No status is asked for here: that would begin what is armed.
		w.write("hello")
		eventually(t, func() bool { return slices.Contains(w.woken(), "[monitor/line again] hello") })
		if a, o := w.monitor("again"), w.monitor("once"); a.State != protocol.MonitorRunning || a.TaskID != "monitor:again:3" || o.State != protocol.MonitorIdle || o.Armed {
			t.Errorf("they are %+v and %+v", a, o)
		}
	})
	t.Run("plugin/MN-07 restoring a snapshot stops monitors, arms those with restart and leaves others idle", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		w := d.watched(t)
		w.start(again)
		w.start(once)
		must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), &protocol.SnapshotMutationParams{SessionID: w.id, Name: "s"}))
		w.start(follow("later"))
		before := w.status().Revision
		must[*protocol.SnapshotRestoreResult](t)(d.Snapshots.Restore(t.Context(), &protocol.SnapshotMutationParams{SessionID: w.id, Name: "s"}))
		for _, id := range []protocol.TaskID{"monitor:again:1", "monitor:once:2", "monitor:later:3"} {
			if got := w.ended(t, w.id, id); got.State != protocol.TaskCancelled {
				t.Errorf("%s ended as %s", id, got.State)
			}
		}
		got := w.status()
		if len(got.Data) != 2 || got.Revision <= before || got.ActiveCount != 1 {
			t.Errorf("there are %+v", got)
		}
		if a, o := w.monitor("again"), w.monitor("once"); a.TaskID != "monitor:again:4" || o.State != protocol.MonitorIdle || o.Armed {
			t.Errorf("they are %+v and %+v", a, o)
		}
	})
	t.Run("plugin/MN-07 a fork starts with no running monitors, and those of its origin keep running", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		w := d.watched(t)
		w.start(again)
		w.start(once)
		res := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: w.id}}))
		f := &watched{daemon: d, t: t, id: res.SessionID, dir: w.dir}
		if got := must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: f.id})).Data; len(got) != 0 {
			t.Errorf("the fork begins with %+v", got)
		}
		if a, o := f.monitor("again"), f.monitor("once"); a.State != protocol.MonitorRunning || o.State != protocol.MonitorIdle || o.Armed {
			t.Errorf("they are %+v and %+v", a, o)
		}
		if n := w.status().ActiveCount; n != 2 {
			t.Errorf("%d of the other run", n)
		}
	})
	t.Run("runtime/B10 deleting a session ends the processes of its monitors", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		w := d.watched(t)
		w.start(protocol.MonitorSpec{ID: "m", Command: "echo $$; exec sleep 600", Wake: protocol.WakeNotify})
		eventually(t, func() bool { return len(w.told) > 0 || len(w.take()) > 0 })
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: w.id}))
		eventually(t, func() bool { return !lives(w.told[0].Message) })
	})
	t.Run("runtime/B10 a monitor cannot be transferred or started as a task", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		w, other := d.watched(t), d.watched(t)
		w.start(once)
		_, err := d.Tasks.Transfer(t.Context(), &protocol.TaskTransferParams{SessionID: w.id, TaskIDs: []protocol.TaskID{"monitor:once:1"}, To: other.id})
		if !errors.As(err, new(*param.Error)) {
			t.Errorf("a transfer: %v", err)
		}
		spec := protocol.TaskSpec{Kind: protocol.TaskMonitor, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "true"}}
		if _, err := d.Tasks.Start(t.Context(), "", &protocol.TaskStartParams{SessionID: w.id, Spec: spec}); !errors.As(err, new(*param.Error)) {
			t.Errorf("task/start: %v", err)
		}
	})
}
