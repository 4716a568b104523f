package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/left"
)

// burst appends lines to the log of the workspace in one write.
func (h *home) burst(lines ...string) {
	h.t.Helper()
	f, err := os.OpenFile(filepath.Join(h.work, "app.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		h.t.Fatal(err)
	}
}

// marked returns the processes that were started with a variable.
func marked(variable string) []left.Process { return left.Marked(variable + "\x00") }

// unmarked waits until no process that was started with a variable is left.
func unmarked(t *testing.T, variable string) {
	t.Helper()
	eventually(t, "no process is left with "+variable, func() error {
		if left := marked(variable); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
}

// wokenBy waits until a monitor has woken the session so many times and those turns have ended. It
// returns the input of the last one.
func (p *peer) wokenBy(id protocol.SessionID, monitor string, times int) string {
	p.t.Helper()
	var last string
	p.until(fmt.Sprintf("%d turns of %s", times, monitor), func(all []told) bool {
		over, n := 0, 0
		turns := map[protocol.TurnID]bool{}
		for _, e := range all {
			switch {
			case e.Type == protocol.EventTurnAccepted && len(e.Causes) > 0 && e.Causes[0].Origin == monitor:
				turns[e.TurnID], last = true, e.Input[0].Text
				n++
			case e.Type == protocol.EventTurnCompleted && turns[e.TurnID]:
				over++
			}
		}
		if n > times {
			p.t.Fatalf("%d turns of %s, want %d: %q", n, monitor, times, last)
		}
		return over == times
	})
	return last
}

func TestMonitorOfALog(t *testing.T) {
	w := newWorld(t, "allow")
	d := w.serve()
	p := w.dial("")
	id := p.session(w.home)
	mark := "LASHD_E2E_MONITOR=" + w.dir
	spec := protocol.MonitorSpec{
		ID: "again", Command: "touch app.log; tail -n +1 -F app.log & wait", Persistent: true, Restart: true,
		Env: map[string]string{"LASHD_E2E_MONITOR": w.dir},
	}
	once := spec
	once.ID, once.Restart, once.Wake = "once", false, protocol.WakeNotify
	for _, s := range []protocol.MonitorSpec{spec, once} {
		ask[protocol.MonitorResult](p, "monitor/start", protocol.MonitorStartParams{SessionID: id, Spec: s})
	}
	for n, lines := range [][]string{{"one", "two", "three"}, {"four", "five"}} {
		w.burst(lines...)
		if got, want := p.wokenBy(id, "again", n+1), "[monitor/line again] "+strings.Join(lines, "\n"); got != want {
			t.Errorf("plugin/S-14 the turn of burst %d reads %q, want %q", n+1, got, want)
		}
	}
	d.kill()
	d = w.serve()
	p = w.dial("")
	p.attach(id, 0)
	// A restarted monitor reads the log from its beginning, which is a burst as well. The daemon
	// restarts monitors without a request.
	p.wokenBy(id, "again", 3)
	w.burst("six")
	if got := p.wokenBy(id, "again", 4); got != "[monitor/line again] six" {
		t.Errorf("plugin/MN-07 after a restart the turn reads %q", got)
	}
	status := ask[protocol.MonitorStatusResult](p, "monitor/status", protocol.SessionParams{SessionID: id})
	if m := status.Data; len(m) != 2 || m[0].State != protocol.MonitorRunning || m[1].State != protocol.MonitorIdle || m[1].Armed {
		t.Errorf("plugin/MN-07 monitors after a restart: %+v", m)
	}
	if n := len(marked(mark)); n != 2 {
		t.Errorf("plugin/MN-06 %d processes, want a shell and its tail", n)
	}
	stopped := ask[protocol.MonitorResult](p, "monitor/stop", protocol.MonitorStopParams{SessionID: id, MonitorID: "again"})
	if stopped.Monitor.State != protocol.MonitorStopped || stopped.Monitor.Armed {
		t.Errorf("plugin/MN-06 the stopped monitor is %+v", stopped.Monitor)
	}
	_, err := try[protocol.MonitorResult](p, "monitor/stop", protocol.MonitorStopParams{SessionID: id, MonitorID: "none"})
	if code, kind := refusal(err); code != -32002 || kind != protocol.KindMonitorNotFound {
		t.Errorf("plugin/MN-01 stopping an unknown monitor: %v", err)
	}
	unmarked(t, mark)
	d.stop()
}

func TestPluginMonitorInSandbox(t *testing.T) {
	w := confined(t)
	w.plugin("p", map[string]string{
		"plugin.json": `{"name":"p","lashd":{"monitors":[{"monitorId":"m","command":"sh $PLUGIN_ROOT/watch.sh","armOn":"sessionStart"}]}}`,
		"watch.sh":    "cat " + w.dir + "/config.toml > found; echo out > ../outside; ls $PLUGIN_ROOT > listed; touch made\n",
	})
	w.serve()
	p := w.dial("")
	p.loads("p", nil)
	id := p.session(w.home)
	t.Run("issue/20-2 a monitor that a plugin declares runs in the sandbox of the session, and reads the files of its plugin", func(t *testing.T) {
		made := filepath.Join(w.work, "made")
		ask[protocol.MonitorStatusResult](p, "monitor/status", protocol.SessionParams{SessionID: id})
		eventually(t, "the monitor runs", func() error { _, err := os.Stat(made); return err })
		if got := readText(t, filepath.Join(w.work, "found")) + readText(t, filepath.Join(w.work, "listed")); got != "plugin.json\nwatch.sh\n" {
			t.Errorf("it reads %q", got)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(w.work), "outside")); err == nil {
			t.Error("it writes outside of the workspace")
		}
	})
}
