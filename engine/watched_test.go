package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// watched is a session in a directory of its own, with the updates of its monitors so far.
type watched struct {
	*daemon
	t    *testing.T
	id   protocol.SessionID
	dir  string
	told []protocol.MonitorUpdate
}

func (d *daemon) watched(t *testing.T) *watched {
	t.Helper()
	dir := t.TempDir()
	res := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: dir}))
	return &watched{daemon: d, t: t, id: res.SessionID, dir: dir}
}

func (w *watched) start(spec protocol.MonitorSpec) protocol.Monitor {
	w.t.Helper()
	p := &protocol.MonitorStartParams{SessionID: w.id, Spec: spec}
	return must[*protocol.MonitorResult](w.t)(w.Monitors.Start(w.t.Context(), "cli_a", p)).Monitor
}

func (w *watched) stop(id string) protocol.Monitor {
	w.t.Helper()
	p := &protocol.MonitorStopParams{SessionID: w.id, MonitorID: id}
	return must[*protocol.MonitorResult](w.t)(w.Monitors.Stop(w.t.Context(), "cli_a", p)).Monitor
}

func (w *watched) write(lines ...string) {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// take records new updates.
func (w *watched) take() []protocol.MonitorUpdate {
	w.t.Helper()
	r := must[*protocol.MonitorUpdatesResult](w.t)(w.Monitors.Updates(w.t.Context(), &protocol.SessionParams{SessionID: w.id}))
	w.told = append(w.told, r.Events...)
	return r.Events
}

// hears reports whether a monitor has reported a line.
func (w *watched) hears(id, line string) bool {
	w.take()
	return slices.ContainsFunc(w.told, func(u protocol.MonitorUpdate) bool { return u.MonitorID == id && u.Message == line })
}

func (w *watched) heard(id, line string) {
	w.t.Helper()
	eventually(w.t, func() bool { return w.hears(id, line) })
}

func (w *watched) ack(ids ...string) {
	w.t.Helper()
	must[*protocol.SeqResult](w.t)(w.Monitors.Ack(w.t.Context(), &protocol.MonitorAckParams{SessionID: w.id, MonitorIDs: ids}))
}

func (w *watched) settle() {
	w.t.Helper()
	must[*protocol.SessionWaitResult](w.t)(w.Sessions.Wait(w.t.Context(), &protocol.SessionWaitParams{SessionID: w.id}))
}

func (w *watched) status() *protocol.MonitorStatusResult {
	w.t.Helper()
	return must[*protocol.MonitorStatusResult](w.t)(w.Monitors.Status(w.t.Context(), &protocol.SessionParams{SessionID: w.id}))
}

// monitor returns a monitor's present state; the request also starts armed monitors.
func (w *watched) monitor(id string) protocol.Monitor {
	w.t.Helper()
	all := w.status().Data
	i := slices.IndexFunc(all, func(m protocol.Monitor) bool { return m.Spec.ID == id })
	if i < 0 {
		w.t.Fatalf("there is no monitor %s in %+v", id, all)
	}
	return all[i]
}

// is waits until a monitor reaches a state.
func (w *watched) is(id string, state protocol.MonitorState) protocol.Monitor {
	w.t.Helper()
	var m protocol.Monitor
	eventually(w.t, func() bool { m = w.monitor(id); return m.State == state })
	return m
}

// woken returns the wakes that turns of the session started with.
func (w *watched) woken() []string {
	w.t.Helper()
	w.settle()
	var all []string
	for _, in := range must[*protocol.QueueListResult](w.t)(w.Queue.List(w.t.Context(), &protocol.QueueListParams{SessionID: w.id, All: true})).Data {
		if in.Wake != nil {
			all = append(all, in.Input[0].Text)
		}
	}
	return all
}

// readTasksEvents returns the types of the session's events.
func (w *watched) readTasksEvents() (types []protocol.EventType) {
	w.t.Helper()
	row, err := w.store.Session(w.t.Context(), w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	for seq := protocol.Seq(0); seq < row.Seq; {
		page := must[[]persistence.StoredEvent](w.t)(w.store.Events(w.t.Context(), row.Key, seq, 500))
		for _, e := range page {
			types, seq = append(types, e.Type), e.Seq
		}
	}
	return types
}
