package monitor_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/engine/background"
	"lashd/engine/change"
	"lashd/engine/monitor"
	"lashd/engine/plugin"
	"lashd/engine/queue"
	"lashd/engine/task/live"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// session is the Host of the tests.
type session struct {
	testing.TB
	tasks *live.Tasks
	book  *monitor.Book
	at    map[protocol.TaskID]bool // runs in progress
	room  int
	mode  protocol.SandboxMode
	wakes []queue.Wake
	c     *change.Change // the change in progress
}

// attempt is an Attempt that does nothing.
type attempt struct {
	s  *session
	id protocol.TaskID
}

func (attempt) Claim() bool              { return true }
func (attempt) Release()                 {}
func (a attempt) Go(protocol.Task, bool) { a.s.at[a.id] = true }
func (attempt) End(string, string)       {}

func (s *session) At(id protocol.TaskID) live.Attempt {
	if s.at[id] {
		return attempt{s, id}
	}
	return nil
}

func (s *session) Again(t *protocol.Task) live.Attempt        { return attempt{s, t.ID} }
func (*session) WakeCeiling(*protocol.Task) *protocol.Ceiling { return nil }
func (s *session) Over(d *live.Draft, t protocol.Task)        { s.book.In(d.Change()).RunOver(t) }
func (*session) Moved()                                       {}
func (*session) Dir(name string) string                       { return "/w/" + name }
func (s *session) Room() int                                  { return s.room }
func (s *session) Mode() protocol.SandboxMode                 { return s.mode }
func (s *session) Wake(_ *change.Change, w queue.Wake) error {
	s.wakes = append(s.wakes, w)
	return nil
}
func (s *session) Watch(protocol.MonitorSpec) func(*protocol.Task) live.Attempt {
	return func(t *protocol.Task) live.Attempt { return attempt{s, t.ID} }
}

// load returns a session with queued inputs and the stored monitors.
func load(t testing.TB, stored string, inputs ...protocol.QueuedInput) *session {
	t.Helper()
	s := &session{TB: t, at: map[protocol.TaskID]bool{}, room: 1000}
	s.tasks = live.New("ses_a", "inc", s, nil)
	s.book = monitor.New("ses_a", s, s.tasks, queue.New(nil, inputs))
	if stored != "" {
		if err := json.Unmarshal([]byte(stored), s.book); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// change makes a change and stores it. It returns the monitor events, one line for each.
func (s *session) change(f func(*monitor.Draft)) string {
	s.Helper()
	c := change.New(change.Base{}, persistence.Commit{})
	s.c = c
	before := encode(s, s.book.List())
	f(s.book.In(c))
	if now := encode(s, s.book.List()); now != before {
		s.Errorf("the draft changed stored monitors to %s, were %s", now, before)
	}
	if err := c.Finish(); err != nil {
		s.Fatal(err)
	}
	c.Land(persistence.Result{})
	var all []string
	for _, e := range c.Told() {
		if e.Monitor != nil {
			all = append(all, line(*e.Monitor, e.Updates))
		}
	}
	if changed := s.book.In(c).Changed(); changed != slices.ContainsFunc(c.Component, func(p persistence.Component) bool { return p.Name == "monitors" }) {
		s.Errorf("the change is one of monitors: %t, and stores %+v", changed, c.Component)
	}
	return strings.Join(all, "\n")
}

func line(m protocol.Monitor, updates []protocol.MonitorUpdate) string {
	all := []string{fmt.Sprintf("%s %s armed %t", m.Spec.ID, m.State, m.Armed)}
	if m.WakeOutstanding {
		all = append(all, "woke")
	}
	for _, u := range updates {
		all = append(all, fmt.Sprintf("| %d %s%s: %s", u.Sequence, u.State, u.Stream, u.Message))
		if u.Wakes {
			all = append(all, "wakes")
		}
		if u.Dropped > 0 {
			all = append(all, fmt.Sprintf("dropped %d", u.Dropped))
		}
	}
	return strings.Join(all, " ")
}

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// is compares lines with those that a test expects.
func (s *session) is(what, got string, want ...string) {
	s.Helper()
	if want := strings.Join(want, "\n"); got != want {
		s.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

// now returns all monitors as clients see them.
func (s *session) now() string {
	var all []string
	for _, m := range s.book.List() {
		all = append(all, line(m, nil))
	}
	return strings.Join(all, ", ")
}

func entry(id string, with ...func(*protocol.MonitorSpec)) monitor.Entry {
	e := monitor.Entry{Monitor: protocol.Monitor{Spec: protocol.MonitorSpec{ID: id, Command: "tail", Cwd: "sub", Wake: protocol.WakeTurn}}}
	for _, f := range with {
		f(&e.Spec)
	}
	return e
}

func restart(s *protocol.MonitorSpec) { s.Restart = true }

func start(e monitor.Entry) func(*monitor.Draft) {
	return func(d *monitor.Draft) {
		d.Start(e, protocol.TaskOrigin{ClientID: "cli_a", Ceiling: &protocol.Ceiling{NoTools: true}})
	}
}

// end ends the run of a monitor.
func (s *session) end(run protocol.TaskID, o protocol.TaskOutcome) string {
	s.Helper()
	t, ok := s.tasks.Find(run)
	if !ok {
		s.Fatalf("no run %s", run)
	}
	delete(s.at, run)
	return s.change(func(*monitor.Draft) {
		s.tasks.In(s.c).Add(t, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: &o})
	})
}

func TestRunsOfMonitors(t *testing.T) {
	s := load(t, "")
	if s.book.Count()+s.book.Active()+int(s.book.Revision()) != 0 || s.book.Waiting(true) != nil || encode(t, s.book.List()) != "[]" {
		t.Error("a session without monitors has some")
	}
	s.is("started", s.change(start(entry("m"))), "m running armed true")
	run, ok := s.tasks.Find("monitor:m:1")
	if !ok || run.Spec.Command.Workdir != "/w/sub" || run.Origin.SessionID != "ses_a" || run.Origin.ClientID != "cli_a" || !run.Origin.Ceiling.NoTools {
		t.Errorf("the run is %+v", run)
	}
	if s.book.Count() != 1 || s.book.Active() != 1 || s.book.Revision() != 1 || s.book.Waiting(true) != nil {
		t.Errorf("%d monitors, %d active, revision %d", s.book.Count(), s.book.Active(), s.book.Revision())
	}
	zero, one := 0, 1
	for _, c := range []struct {
		outcome protocol.TaskOutcome
		want    string
	}{
		{protocol.TaskOutcome{Kind: protocol.TaskExited, ExitCode: &zero}, "m exited armed false | 1 exited: exited with code 0"},
		{protocol.TaskOutcome{Kind: protocol.TaskExited, ExitCode: &one}, "m failed armed false | 2 failed: exited with code 1"},
		{protocol.TaskOutcome{Kind: protocol.TaskSignal, Signal: "SIGKILL"}, "m failed armed false | 3 failed: ended by SIGKILL"},
		{protocol.TaskOutcome{Kind: protocol.TaskStopped, By: "internal:timeLimit", Message: "too long"}, "m failed armed false | 4 failed: stopped: too long"},
		{protocol.TaskOutcome{Kind: protocol.TaskStopped, By: "me"}, "m stopped armed false | 5 stopped: stopped by me"},
		{protocol.TaskOutcome{Kind: protocol.TaskStopped, By: "me", Message: "why"}, "m stopped armed false | 6 stopped: stopped by me: why"},
		{protocol.TaskOutcome{Kind: protocol.TaskLost, Evidence: &protocol.TaskEvidence{Reason: "lashd was stopped"}}, "m idle armed false | 7 idle: lashd was stopped"},
		{protocol.TaskOutcome{Kind: protocol.TaskError, Code: "no_session", Message: "gone"}, "m failed armed false | 8 failed: no_session gone"},
	} {
		e, _ := s.book.Find("m")
		s.is("ended", s.end(e.TaskID, c.outcome), c.want)
		now, _ := s.book.Find("m")
		failed := strings.HasPrefix(c.want, "m failed")
		if (now.LastError != "") != failed || (now.LastExitCode == nil) != (c.outcome.ExitCode == nil) {
			t.Errorf("after %s: error %q, exit code %v", c.want, now.LastError, now.LastExitCode)
		}
		s.change(func(d *monitor.Draft) { d.Run("m", protocol.TaskOrigin{}) })
		if now, _ = s.book.Find("m"); now.LastError != "" || now.LastExitCode != nil || now.State != protocol.MonitorRunning {
			t.Errorf("begun again, it is %+v", now)
		}
	}
	if s.book.Revision() != 17 || s.book.TakeInterrupted() {
		t.Errorf("revision %d, want 17", s.book.Revision())
	}
	got := s.book.TakeUpdates()
	if len(got) != 8 || got[0].Sequence != 1 || s.book.TakeUpdates() != nil {
		t.Errorf("updates %+v", got)
	}
}

func TestRestartInterruptedMonitors(t *testing.T) {
	s := load(t, "")
	s.change(start(entry("m", restart)))
	s.change(start(entry("n", restart)))
	s.is("interrupted", s.end("monitor:m:1", protocol.TaskOutcome{Kind: protocol.TaskLost, Evidence: &protocol.TaskEvidence{Reason: "gone"}}), "m idle armed true | 1 idle: gone")
	if got := s.book.Waiting(false); !slices.Equal(got, []string{"m"}) || !s.book.TakeInterrupted() || s.book.TakeInterrupted() {
		t.Errorf("waiting are %v", got)
	}
	s.is("ended by itself", s.end("monitor:n:2", protocol.TaskOutcome{Kind: protocol.TaskError, Code: "x"}), "n failed armed false | 2 failed: x")
	if s.book.TakeInterrupted() {
		t.Error("a monitor that has ended would be restarted")
	}
}

func TestStopMonitors(t *testing.T) {
	s := load(t, "")
	s.change(start(entry("m")))
	stop := func() string {
		e, _ := s.book.Find("m")
		return s.change(func(d *monitor.Draft) { d.Stop(e, "me", "enough") })
	}
	s.is("while it runs", stop(), "m running armed false")
	if run, _ := s.tasks.Find("monitor:m:1"); run.CancelRequested == nil || run.CancelRequested.Reason != "enough" {
		t.Errorf("the run is %+v", run)
	}
	s.end("monitor:m:1", protocol.TaskOutcome{Kind: protocol.TaskStopped, By: "me", Message: "enough"})
	s.is("while it does not run", stop(), "m stopped armed false | 2 stopped: stopped by me")
	if s.book.Revision() != 4 {
		t.Errorf("revision %d, want 4", s.book.Revision())
	}
}

func output(number int64, dropped int64, lines ...string) monitor.Output {
	o := monitor.Output{Number: number, Dropped: dropped}
	for _, l := range lines {
		text, err := strings.CutPrefix(l, "err:")
		o.Lines = append(o.Lines, background.Line{Text: text, Err: err, Cut: text == "cut"})
	}
	return o
}

func TestMonitorOutput(t *testing.T) {
	s := load(t, "", protocol.QueuedInput{Source: "task:monitor:m:1:event:3:wake"})
	s.change(start(entry("m")))
	hear := func(o monitor.Output) string { return s.change(func(d *monitor.Draft) { d.Record("monitor:m:1", o) }) }
	if !s.book.Accepts("monitor:m:1", output(1, 0, "a")) || s.book.Accepts("monitor:m:2", output(1, 0, "a")) {
		t.Error("it hears another run")
	}
	s.is("a line of standard error wakes nothing", hear(output(1, 0, "err:e")), "m running armed true | 1 stderr: e")
	if s.book.Accepts("monitor:m:1", output(1, 0, "a")) {
		t.Error("it hears the same twice")
	}
	if len(s.wakes) != 0 {
		t.Errorf("an error wakes: %+v", s.wakes)
	}
	s.is("a line wakes", hear(output(2, 3, "one", "err:e", "cut")), "m running armed true woke | 2 stdout: one wakes | 3 stderr: e | 4 stdout: cut wakes dropped 3")
	w := s.wakes[0]
	if w.Source != "task:monitor:m:1:event:3:wake" || w.Merge != "m" || w.Cause.Text != "one\ncut [cut]\n[3 more lines omitted]" || w.Cause.Type != "monitor/line" || !w.Ceiling.NoTools {
		t.Errorf("the wake is %+v", w)
	}
	s.is("the next line does not wake before the acknowledgement", hear(output(3, 0, "two")), "m running armed true woke | 5 stdout: two")
	if e, _ := s.book.Find("m"); e.EventCount != 5 || e.DroppedCount != 3 || e.LastEvent != "two" || e.Unreported != 1 {
		t.Errorf("it is %+v", e)
	}
	if got := s.now(); got != "m running armed true woke" {
		t.Error(got)
	}
	s.change(func(d *monitor.Draft) { d.Ack([]string{"m"}) })
	if got := s.now(); got != "m running armed true" {
		t.Error(got)
	}
	s.wakes = nil
	hear(output(4, 0, "three"))
	if got := s.wakes[0].Cause.Text; got != "three\n[1 earlier lines did not wake the session]" {
		t.Errorf("the next wake says %q", got)
	}
	s.is("nothing to acknowledge", s.change(func(d *monitor.Draft) {
		d.Ack([]string{"other"})
		if d.Changed() {
			t.Error("it changes monitors")
		}
	}), "")
}

func TestLongLines(t *testing.T) {
	s := load(t, "")
	s.room = 200
	s.change(start(entry("m")))
	long := strings.Repeat("x", 8000)
	s.change(func(d *monitor.Draft) { d.Record("monitor:m:1", output(1, 0, long, strings.Repeat("y", 200), "z")) })
	e, _ := s.book.Find("m")
	w := s.wakes[0]
	size := w.Size()
	if e.LastEvent != "z" || size > 200 || !strings.HasPrefix(w.Cause.Text, "xxx") {
		t.Errorf("the wake has %d bytes, at most 200: %q", size, w.Cause.Text)
	}
	s = load(t, "")
	s.room = 20_000
	s.change(start(entry("m")))
	s.change(func(d *monitor.Draft) {
		d.Record("monitor:m:1", output(1, 0, long, strings.Repeat("y", 192), strings.Repeat("é", 200)))
	})
	if e, _ := s.book.Find("m"); e.LastEvent != strings.Repeat("é", 128) {
		t.Errorf("the newest line is %q", e.LastEvent)
	}
	if got, want := s.wakes[0].Cause.Text, long+"\n[2 more lines omitted]"; got != want {
		t.Errorf("the wake says %d bytes: …%s", len(got), got[7990:])
	}
	quiet := func(s *protocol.MonitorSpec) { s.Wake = protocol.WakeNotify }
	s.wakes = nil
	s.change(start(entry("n", quiet)))
	s.is("a monitor that only notifies", s.change(func(d *monitor.Draft) { d.Record("monitor:n:2", output(1, 0, "a")) }), "n running armed true | 4 stdout: a")
	if len(s.wakes) != 0 {
		t.Errorf("it wakes %+v", s.wakes)
	}
}

func TestDeclaredMonitors(t *testing.T) {
	arms := func(s *protocol.MonitorSpec) { s.ArmOn = protocol.ArmSession }
	declare := func(all ...monitor.Entry) []plugin.MonitorDeclaration {
		var found []plugin.MonitorDeclaration
		for _, e := range all {
			found = append(found, plugin.MonitorDeclaration{Plugin: "p", Spec: e.Spec})
		}
		return found
	}
	s := load(t, "")
	s.change(start(entry("mine")))
	s.is("new", s.change(func(d *monitor.Draft) { d.Declare(declare(entry("a", arms), entry("b")), true) }), "a idle armed true", "b idle armed false")
	if got, none := s.book.Waiting(true), s.book.Waiting(false); !slices.Equal(got, []string{"a"}) || none != nil {
		t.Errorf("waiting are %v, without those of plugins %v", got, none)
	}
	s.change(func(d *monitor.Draft) { d.Run("a", protocol.TaskOrigin{}) })
	if run, _ := s.tasks.Find("monitor:a:2"); run.Origin.Plugin != "p" {
		t.Errorf("the run is %+v", run)
	}
	s.is("the same", s.change(func(d *monitor.Draft) { d.Declare(declare(entry("a", arms), entry("b")), true) }), "")
	s.is("changed", s.change(func(d *monitor.Draft) { d.Declare(declare(entry("a", arms), entry("b", arms)), true) }), "b idle armed true")
	s.is("no longer declared", s.change(func(d *monitor.Draft) { d.Declare(nil, true) }),
		"a stopped armed false | 1 stopped: its plugin no longer declares it", "b stopped armed false | 2 stopped: its plugin no longer declares it")
	if run, _ := s.tasks.Find("monitor:a:2"); run.CancelRequested == nil || run.CancelRequested.By != "internal:plugin" {
		t.Errorf("the run is %+v", run)
	}
	s.is("remaining", s.now(), "mine running armed true")
	s.is("where it may not arm itself", s.change(func(d *monitor.Draft) { d.Declare(declare(entry("a", arms)), false) }), "a idle armed false")
}

// stored is the monitors of another session, as the store has them.
const stored = `{"revision":7,"sequence":9,"runs":3,"entries":{
	"a":{"monitorId":"a","spec":{"monitorId":"a","command":"x","restartOnRestore":true},"state":"running","armed":true,"taskId":"monitor:a:3","waking":"w","heard":4,"unsaid":2},
	"b":{"monitorId":"b","spec":{"monitorId":"b","command":"x"},"state":"running","armed":true,"taskId":"monitor:b:2"},
	"c":{"monitorId":"c","spec":{"monitorId":"c","command":"x"},"state":"exited","taskId":"monitor:c:1"}}}`

func TestForkedMonitors(t *testing.T) {
	s := load(t, stored)
	s.book.Own()
	s.is("loaded", s.now(), "a idle armed true, b idle armed false, c exited armed false")
	if a, _ := s.book.Find("a"); a.TaskID != "" || a.Waking != "" || a.LastBatch != 0 || a.Unreported != 0 {
		t.Errorf("it is %+v", a)
	}
	s.change(func(d *monitor.Draft) { d.Run("a", protocol.TaskOrigin{}) })
	s.book.Own()
	s.is("its own", s.now(), "a running armed true, b idle armed false, c exited armed false")
	if _, ok := s.tasks.Find("monitor:a:4"); !ok {
		t.Error("the number of a run comes twice")
	}
	s.book.Forget()
	if s.now() != "" || s.book.Count() != 0 {
		t.Error("they are not forgotten")
	}
	s.book.Own()
}

func TestRestoreMonitors(t *testing.T) {
	var then *monitor.Monitors
	if err := json.Unmarshal([]byte(stored), &then); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range then.Restored() {
		ids = append(ids, line(m, nil))
	}
	if want := []string{"a idle armed true", "b idle armed false", "c exited armed false"}; !slices.Equal(ids, want) {
		t.Errorf("restored are %q, want %q", ids, want)
	}
	if encode(t, (*monitor.Monitors)(nil).Restored()) != "[]" {
		t.Error("no monitors are not an empty list")
	}
	s := load(t, "")
	for range 5 {
		s.change(start(entry("m")))
	}
	s.is("restored", s.change(func(d *monitor.Draft) { d.Restore(then) }))
	s.is("now", s.now(), "a idle armed true, b idle armed false, c exited armed false")
	if run, _ := s.tasks.Find("monitor:m:5"); run.CancelRequested == nil || s.book.Revision() != 8 {
		t.Errorf("the run is %+v, the revision %d", run, s.book.Revision())
	}
	if run, _ := s.tasks.Find("monitor:m:4"); run.CancelRequested != nil {
		t.Errorf("an older run is %+v", run)
	}
	s.change(func(d *monitor.Draft) { d.Run("a", protocol.TaskOrigin{}) })
	if _, ok := s.tasks.Find("monitor:a:6"); !ok {
		t.Error("the number of a run comes twice")
	}
	s.is("to none", s.change(func(d *monitor.Draft) { d.Restore(nil) }))
	s.is("now", s.now(), "")
	s = load(t, "")
	s.is("none to none", s.change(func(d *monitor.Draft) {
		d.Restore(nil)
		if d.Changed() {
			t.Error("it changes monitors")
		}
	}), "")
}

func TestOldestUpdatesAreDropped(t *testing.T) {
	s := load(t, "")
	s.change(start(entry("m")))
	for i := range int64(130) {
		s.change(func(d *monitor.Draft) { d.Record("monitor:m:1", output(i+1, 0, "err:x")) })
	}
	got := s.book.TakeUpdates()
	if len(got) != 128 || got[0].Sequence != 3 || got[0].MonitorID != "m" {
		t.Errorf("%d updates wait, the first is %+v", len(got), got[0])
	}
}
