package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/engine"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// follow is a monitor of the lines appended to the workspace file log.
func follow(id string) protocol.MonitorSpec {
	return protocol.MonitorSpec{ID: id, Command: "touch log; exec tail -n +1 -F log 2>/dev/null", Persistent: true}
}

func TestMonitorSpecs(t *testing.T) {
	d := start(t, setup{model: replies()})
	t.Run("plugin/MN-01 a monitor has defaults", func(t *testing.T) {
		w := d.watched(t)
		got := w.start(protocol.MonitorSpec{ID: "m", Command: "sleep 600"})
		want := protocol.MonitorSpec{ID: "m", Command: "sleep 600", TimeoutMs: 300_000, ArmOn: protocol.ArmManual, Wake: protocol.WakeTurn}
		if fmt.Sprint(got.Spec) != fmt.Sprint(want) || !got.Armed || got.State != protocol.MonitorRunning || got.TaskID != "monitor:m:1" {
			t.Errorf("it is %+v", got)
		}
		task := w.readTask(t, w.id, "monitor:m:1").Task
		if task.Spec.Kind != protocol.TaskMonitor || task.Spec.Recovery != protocol.RecoverOwner || task.Origin.ClientID != "cli_a" {
			t.Errorf("its task is %+v", task)
		}
		if got := w.start(protocol.MonitorSpec{ID: "p", Command: "sleep 600", TimeoutMs: 7, Persistent: true}); got.Spec.TimeoutMs != 0 {
			t.Errorf("a persistent one has a limit of %d ms", got.Spec.TimeoutMs)
		}
	})
	for field, spec := range map[string]protocol.MonitorSpec{
		"monitorId": {ID: "a:b", Command: "x"}, "command": {ID: "m", Command: " "}, "timeoutMs": {ID: "m", Command: "x", TimeoutMs: 3_600_001},
		"armOn": {ID: "m", Command: "x", ArmOn: "later"}, "wake": {ID: "m", Command: "x", Wake: "maybe"}, "env": {ID: "m", Command: "x", Env: map[string]string{"A=B": ""}},
		"cwd": {ID: "m", Command: "x", Cwd: "nowhere"},
	} {
		t.Run("plugin/MN-01 an invalid "+field+" is rejected and changes nothing", func(t *testing.T) {
			w := d.watched(t)
			_, err := d.Monitors.Start(t.Context(), "cli_a", &protocol.MonitorStartParams{SessionID: w.id, Spec: spec})
			wrong, ok := errors.AsType[*param.Error](err)
			if !ok || wrong.Pointer != "/spec/"+field {
				t.Errorf("error %v", err)
			}
			if got := w.status(); len(got.Data) != 0 || got.Revision != 0 {
				t.Errorf("there is %+v", got)
			}
		})
	}
	t.Run("plugin/MN-01 a running monitor is not started again, nor with another spec", func(t *testing.T) {
		w := d.watched(t)
		first := w.start(protocol.MonitorSpec{ID: "m", Command: "sleep 600"})
		r := must[*protocol.MonitorResult](t)(d.Monitors.Start(t.Context(), "", &protocol.MonitorStartParams{SessionID: w.id, Spec: protocol.MonitorSpec{ID: "m"}}))
		if !r.Existing || r.Monitor.TaskID != first.TaskID {
			t.Errorf("started again it is %+v", r)
		}
		_, err := d.Monitors.Start(t.Context(), "", &protocol.MonitorStartParams{SessionID: w.id, Spec: protocol.MonitorSpec{ID: "m", Command: "sleep 61"}})
		if !errors.As(err, new(*engine.MonitorRunningError)) {
			t.Errorf("with another command: %v", err)
		}
		_, err = d.Monitors.Stop(t.Context(), "", &protocol.MonitorStopParams{SessionID: w.id, MonitorID: "other"})
		if !errors.Is(err, persistence.ErrNotFound) {
			t.Errorf("to stop one that is not there: %v", err)
		}
	})
	t.Run("plugin/MN-01 a session has at most 32 monitors", func(t *testing.T) {
		w := d.watched(t)
		for i := range 32 {
			w.start(protocol.MonitorSpec{ID: fmt.Sprint("m", i), Command: "true"})
		}
		_, err := d.Monitors.Start(t.Context(), "", &protocol.MonitorStartParams{SessionID: w.id, Spec: protocol.MonitorSpec{ID: "more", Command: "true"}})
		if !errors.As(err, new(*param.Error)) {
			t.Errorf("error %v", err)
		}
	})
}

// declaring is a plugin that declares monitors.
func declaring(id string, specs ...protocol.MonitorSpec) plugin.Factory {
	return plugin.Static(id, func(r *plugin.Registrar) error {
		for _, s := range specs {
			r.Monitors().Add(s)
		}
		return nil
	})
}

func TestDeclaredMonitors(t *testing.T) {
	atStart := protocol.MonitorSpec{ID: "a", Command: "sleep 600", ArmOn: protocol.ArmSession}
	t.Run("plugin/MN-02 a monitor armed at session start is started by a poll or by the first turn", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: []plugin.Factory{declaring("p", atStart, protocol.MonitorSpec{ID: "b", Command: "sleep 600"})}})
		w := d.watched(t)
		if got := must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: w.id})).Data; len(got) != 0 {
			t.Errorf("before anybody asks there are %+v", got)
		}
		if a, b := w.monitor("p:a"), w.monitor("p:b"); a.State != protocol.MonitorRunning || a.Plugin != "p" || b.State != protocol.MonitorIdle || b.Armed {
			t.Errorf("they are %+v and %+v", a, b)
		}
		other := d.watched(t)
		d.turn(t, other.id, "go")
		got := must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: other.id})).Data
		if len(got) != 1 || got[0].ID != "monitor:p:a:1" || got[0].Origin.Plugin != "p" {
			t.Errorf("after a turn there are %+v", got)
		}
	})
	t.Run("plugin/MN-01 declaring a monitor again changes nothing, and a stopped one stays stopped", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: []plugin.Factory{declaring("p", atStart)}})
		w := d.watched(t)
		w.is("p:a", protocol.MonitorRunning)
		if got := w.stop("p:a"); got.State != protocol.MonitorStopped || got.Armed {
			t.Errorf("stopped it is %+v", got)
		}
		before := w.status().Revision
		must[*protocol.SeqResult](t)(d.Sessions.Close(t.Context(), &protocol.SessionMutationParams{SessionID: w.id}))
		if got := w.status(); got.Revision != before || got.Data[0].State != protocol.MonitorStopped {
			t.Errorf("after reopening it is %+v, the revision was %d", got, before)
		}
		r := must[*protocol.MonitorResult](t)(d.Monitors.Start(t.Context(), "", &protocol.MonitorStartParams{SessionID: w.id, Spec: protocol.MonitorSpec{ID: "p:a"}}))
		if r.Monitor.State != protocol.MonitorRunning || r.Monitor.TaskID != "monitor:p:a:2" {
			t.Errorf("started by its id it is %+v", r.Monitor)
		}
	})
	t.Run("plugin/MN-01 a changed declaration applies to the next run, and a removed one removes the monitor", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: []plugin.Factory{declaring("p", atStart, protocol.MonitorSpec{ID: "b", Command: "true"})}})
		w := d.watched(t)
		w.is("p:a", protocol.MonitorRunning)
		changed := atStart
		changed.Command = "sleep 61"
		w.daemon = d.restart(t, func(s *setup) { s.plugins = []plugin.Factory{declaring("p", changed)} })
		got := w.status().Data
		if len(got) != 1 || got[0].Spec.Command != "sleep 61" || got[0].Armed {
			t.Errorf("there are %+v", got)
		}
	})
	t.Run("plugin/MN-01 an invalid declaration fails the plugin by name", func(t *testing.T) {
		for _, specs := range [][]protocol.MonitorSpec{{{ID: "a"}}, {atStart, atStart}} {
			d := start(t, setup{model: replies(), plugins: []plugin.Factory{declaring("p", specs...)}})
			_, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir()})
			if wrong, ok := errors.AsType[*plugin.BuildError](err); !ok || wrong.Plugin != "p" {
				t.Errorf("error %v", err)
			}
		}
	})
}

func TestMonitorWakes(t *testing.T) {
	t.Run("plugin/S-14 a burst of lines is one wake and one turn", func(t *testing.T) {
		w := start(t, setup{model: replies()}).watched(t)
		w.start(follow("m"))
		var burst []string
		for i := range 40 {
			burst = append(burst, fmt.Sprint("line ", i))
		}
		w.write(burst...)
		w.heard("m", "line 39")
		if got := w.woken(); len(got) != 1 || !strings.HasPrefix(got[0], "[monitor/line m] line 0\nline 1\n") || !strings.HasSuffix(got[0], "line 39") {
			t.Errorf("it woke the session with %q", got)
		}
	})
	t.Run("plugin/MN-03 a monitor wakes once until the wake is acknowledged, and standard error never wakes", func(t *testing.T) {
		g := newGate("work")
		w := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}}).watched(t)
		running := w.begin(t, w.id, "go").TurnID
		<-g.called
		w.start(protocol.MonitorSpec{ID: "m", Persistent: true, Command: `touch log; echo ready; tail -n +1 -F log 2>/dev/null | while read x; do case $x in e*) echo $x >&2;; *) echo $x;; esac; done`})
		w.heard("m", "ready")
		w.ack("m")
		w.write("err")
		w.heard("m", "err")
		if w.monitor("m").WakeOutstanding {
			t.Error("standard error has woken the session")
		}
		for _, line := range []string{"one", "two"} {
			w.write(line)
			w.heard("m", line)
		}
		if m := w.monitor("m"); !m.WakeOutstanding || m.LastEvent != "two" {
			t.Errorf("it is %+v", m)
		}
		w.ack("m")
		w.write("three")
		w.heard("m", "three")
		close(g.open)
		w.wait(t, running)
		if got := w.woken(); len(got) != 3 || got[1] != "[monitor/line m] one" || got[2] != "[monitor/line m] three\n[1 earlier lines did not wake the session]" {
			t.Errorf("it woke the session with %q", got)
		}
		wakes := map[string]bool{"ready": true, "err": false, "one": true, "two": false, "three": true}
		for _, u := range w.told {
			if u.Wakes != wakes[u.Message] || (u.Stream == protocol.MonitorStderr) != (u.Message == "err") {
				t.Errorf("told of %+v", u)
			}
		}
	})
	t.Run("plugin/MN-03 the end of the turn that a wake started acknowledges the wake", func(t *testing.T) {
		w := start(t, setup{model: replies()}).watched(t)
		w.start(follow("m"))
		for _, line := range []string{"one", "two"} {
			w.write(line)
			w.heard("m", line)
			w.settle()
			if w.monitor("m").WakeOutstanding {
				t.Errorf("after the turn of %s the wake is outstanding", line)
			}
		}
		if got := w.woken(); !slices.Equal(got, []string{"[monitor/line m] one", "[monitor/line m] two"}) {
			t.Errorf("it woke the session with %q", got)
		}
	})
	t.Run("plugin/MN-03 a monitor that only notifies wakes no session, and lines do not change the revision", func(t *testing.T) {
		w := start(t, setup{model: replies()}).watched(t)
		spec := follow("m")
		spec.Wake = protocol.WakeNotify
		w.start(spec)
		before := w.status().Revision
		w.write("one")
		w.heard("m", "one")
		if got := w.status(); got.Revision != before || got.Data[0].EventCount == 0 || len(w.woken()) > 0 {
			t.Errorf("it is %+v and woke %q; the revision was %d", got, w.woken(), before)
		}
	})
	t.Run("plugin/S-14 monitors with the same id in two sessions are independent", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		a, b := d.watched(t), d.watched(t)
		a.start(follow("m"))
		b.start(follow("m"))
		must[*protocol.TaskResult](t)(d.Tasks.Cancel(t.Context(), "cli_a", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: a.id, TaskID: "monitor:m:1"}}))
		if got := a.is("m", protocol.MonitorStopped); got.Armed {
			t.Errorf("cancelled it is %+v", got)
		}
		b.write("still")
		b.heard("m", "still")
	})
}

func TestMonitorDirectories(t *testing.T) {
	// leadsOut is a session with a directory sub, and one outside of its workspace.
	leadsOut := func(t *testing.T) (w *watched, outside string) {
		w = start(t, setup{model: replies()}).watched(t)
		if err := os.Mkdir(filepath.Join(w.dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		return w, t.TempDir()
	}
	spec := protocol.MonitorSpec{ID: "m", Command: "touch ran; echo began; exec sleep 600", Cwd: "sub", Persistent: true, Restart: true}
	ran := func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "ran"))
		return err == nil
	}
	t.Run("outside/7 a monitor does not start again in a directory that became a link out of the workspace", func(t *testing.T) {
		w, outside := leadsOut(t)
		w.start(spec)
		w.heard("m", "began")
		w.stop("m")
		lead(t, w.dir, "sub", outside)
		_, err := w.Monitors.Start(t.Context(), "", &protocol.MonitorStartParams{SessionID: w.id, Spec: protocol.MonitorSpec{ID: "m"}})
		if wrong, ok := errors.AsType[*param.Error](err); !ok || wrong.Pointer != "/spec/cwd" {
			t.Fatalf("error %v", err)
		}
		if ran(outside) {
			t.Error("it ran outside of the workspace")
		}
	})
	t.Run("outside/7 the daemon does not restart a monitor in a directory that became a link out of the workspace", func(t *testing.T) {
		top := t
		w, outside := leadsOut(t)
		w.start(spec)
		w.heard("m", "began")
		w.halt()
		lead(t, w.dir, "sub", outside)
		w.daemon = w.restart(top, nil)
		if m := w.is("m", protocol.MonitorFailed); ran(outside) {
			t.Errorf("it ran outside of the workspace: %+v", m)
		}
	})
	t.Run("outside/7 a directory that is swapped constantly never leads out of the workspace", func(t *testing.T) {
		w, outside := leadsOut(t)
		stop := make(chan struct{})
		var swapping sync.WaitGroup
		swapping.Go(func() { exchanges(t, w.dir, outside, stop) })
		for range 60 {
			_, _ = w.Monitors.Start(t.Context(), "", &protocol.MonitorStartParams{SessionID: w.id, Spec: protocol.MonitorSpec{ID: "m", Command: "touch ran", Cwd: "sub"}})
			eventually(t, func() bool { return w.status().ActiveCount == 0 })
		}
		close(stop)
		swapping.Wait()
		if ran(outside) {
			t.Error("it ran outside of the workspace")
		}
	})
}

// exchanges makes sub in dir a directory and a link in turns.
func exchanges(t *testing.T, dir, outside string, stop chan struct{}) {
	sub, was, next := filepath.Join(dir, "sub"), filepath.Join(dir, "was"), filepath.Join(dir, "next")
	for {
		select {
		case <-stop:
			return
		default:
		}
		err := errors.Join(os.Symlink(outside, next), os.Rename(sub, was), os.Rename(next, sub))
		time.Sleep(200 * time.Microsecond) // or else hardly anybody would see the link
		if err = errors.Join(err, os.Remove(sub), os.Rename(was, sub)); err != nil {
			t.Error(err)
			return
		}
		time.Sleep(200 * time.Microsecond)
	}
}

func TestMonitorUpdates(t *testing.T) {
	top := t
	w := start(t, setup{model: replies()}).watched(t)
	quiet := func(id, command string) protocol.MonitorSpec {
		return protocol.MonitorSpec{ID: id, Command: command, Wake: protocol.WakeNotify}
	}
	t.Run("plugin/MN-04 the newest 128 updates are kept until one caller takes them", func(t *testing.T) {
		w.start(quiet("m", "seq 200"))
		w.ended(t, w.id, "monitor:m:1")
		got := w.take()
		if len(got) != 128 || got[0].Message != "74" || got[126].Message != "200" || got[127].State != protocol.MonitorExited || got[127].Sequence != 201 {
			t.Errorf("there are %d, from %+v to %+v", len(got), got[0], got[len(got)-1])
		}
		if again := w.take(); len(again) != 0 {
			t.Errorf("taken again there are %+v", again)
		}
	})
	t.Run("plugin/MN-04 the sequence continues after a restart, and updates that were not taken are lost", func(t *testing.T) {
		w.start(quiet("n", "echo lost"))
		w.ended(t, w.id, "monitor:n:2")
		w.daemon = w.restart(top, nil)
		w.start(quiet("n", "echo x"))
		w.ended(t, w.id, "monitor:n:3")
		if got := w.take(); len(got) != 2 || got[0].Sequence != 204 || got[0].Message != "x" {
			t.Errorf("there are %+v", got)
		}
	})
	t.Run("runtime/B10 a long line is cut with a note, and blank lines are skipped", func(t *testing.T) {
		w.start(quiet("long", "echo; echo '  '; head -c 5000 /dev/zero | tr '\\0' x; echo; printf ' last '"))
		w.ended(t, w.id, "monitor:long:4")
		got := w.take()
		if len(got) != 3 || len(got[0].Message) != 2048 || !got[0].Cut || got[1].Message != "last" || got[1].Cut {
			t.Errorf("there are %d: %.200v", len(got), got)
		}
	})
	t.Run("runtime/B10 a flood of lines is stored in part in few commits, and the rest is counted", func(t *testing.T) {
		before := len(w.readTasksEvents())
		w.start(quiet("flood", "seq 100000"))
		w.ended(t, w.id, "monitor:flood:5")
		m := w.is("flood", protocol.MonitorExited)
		if m.EventCount+m.DroppedCount != 100000 || m.DroppedCount == 0 || m.EventCount < 100 {
			t.Errorf("it is %+v", m)
		}
		if n := len(w.readTasksEvents()) - before; n > 60 {
			t.Errorf("it took %d events", n)
		}
	})
}
