package live_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/engine/task/live"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// session is the Host of the tests. It records the calls that tasks make.
type session struct {
	testing.TB
	tasks *live.Tasks
	room  int                        // free places
	at    map[protocol.TaskID]string // attempts that run
	done  []string
	noted *change.Change
	fails error // of a wake
}

// attempt is an Attempt that records its calls.
type attempt struct {
	s  *session
	id protocol.TaskID
}

func (a attempt) Claim() bool {
	if a.s.room == 0 {
		return false
	}
	a.s.room--
	return true
}

func (a attempt) Release() { a.s.room++ }

func (a attempt) Go(t protocol.Task, begun bool) {
	a.s.note("%s begins %s %t", a.id, t.State, begun)
	a.s.at[a.id] = "here"
}

func (a attempt) End(by, reason string) { a.s.note("%s is to end: %s, %s", a.id, by, reason) }

func (s *session) At(id protocol.TaskID) live.Attempt {
	if s.at[id] == "" {
		return nil
	}
	return attempt{s, id}
}

func (s *session) Again(t *protocol.Task) live.Attempt { return attempt{s, t.ID} }

func (s *session) WakeCeiling(t *protocol.Task) *protocol.Ceiling { return t.Origin.Ceiling }

func (s *session) Wake(c *change.Change, w queue.Wake) error {
	c.TellOf(protocol.Event{Type: protocol.EventQueueChanged, Text: fmt.Sprintf("%s: %s %s", w.Source, w.Cause.Type, w.Cause.Text)})
	return s.fails
}

func (s *session) Over(_ *live.Draft, t protocol.Task) { s.note("%s is over", t.ID) }

func (s *session) Moved() { s.note("moved") }

func (s *session) note(format string, args ...any) {
	s.done = append(s.done, fmt.Sprintf(format, args...))
}

func load(t testing.TB, stored ...protocol.Task) *session {
	s := &session{TB: t, room: 1, at: map[protocol.TaskID]string{}}
	s.tasks = live.New("ses_a", "inc", s, stored)
	return s
}

// change makes a change and stores it. It returns the events, then the calls of the session, then the live tasks.
func (s *session) change(f func(*live.Draft)) string {
	s.Helper()
	s.done = nil
	c := change.New(change.Base{}, persistence.Commit{})
	before := s.now()
	f(s.tasks.In(c))
	if now := s.now(); now != before {
		s.Errorf("the draft changed the live tasks to %s, were %s", now, before)
	}
	if err := c.Finish(); err != nil {
		s.Fatal(err)
	}
	c.Land(persistence.Result{})
	s.noted = c
	var all []string
	for _, e := range c.Told() {
		if e.Task == nil {
			all = append(all, e.Text)
			continue
		}
		all = append(all, fmt.Sprintf("%s %s %s", e.Type, e.Task.ID, e.Task.State))
	}
	return strings.Join(slices.Concat(all, s.done, []string{"live " + s.now()}), "\n")
}

func (s *session) now() string {
	var all []string
	for _, t := range s.tasks.All() {
		all = append(all, string(t.ID)+" "+string(t.State))
	}
	return strings.Join(all, ", ")
}

// is compares the result of a change with expected lines.
func (s *session) is(what, got string, want ...string) {
	s.Helper()
	if want := strings.Join(want, "\n"); got != want {
		s.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

func (s *session) start(id protocol.TaskID, spec protocol.TaskSpec, turn protocol.TurnID) func(*live.Draft) {
	return func(d *live.Draft) {
		d.Start(id, &spec, protocol.TaskOrigin{SessionID: "ses_a", TurnID: turn}, func(t *protocol.Task) live.Attempt { return attempt{s, t.ID} })
	}
}

var (
	other    = protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverRerun}
	external = protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal}
	detached = protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverExternal, Command: &protocol.TaskShell{Detach: true}}
)

// running is a stored task.
func running(id protocol.TaskID, spec protocol.TaskSpec, created int64) protocol.Task {
	return protocol.Task{
		ID: id, SessionID: "ses_a", Spec: spec, State: protocol.TaskRunning, Attempt: 1, Ordinal: 2, CreatedAtMs: created, Origin: protocol.TaskOrigin{SessionID: "ses_a"},
	}
}

func TestStartTasks(t *testing.T) {
	s := load(t)
	s.is("with a free slot", s.change(s.start("a", other, "")), "task/started a pending", "task/changed a running", "a begins running true", "moved", "live a running")
	if c := s.noted; len(c.Tasks) != 1 || len(c.Tasks[0].Events) != 2 || c.Tasks[0].Task.State != protocol.TaskRunning || c.Tasks[0].Task.Incarnation != "inc" {
		t.Errorf("stored are %+v", c.Tasks)
	}
	s.is("without a free slot", s.change(s.start("b", other, "")), "task/started b pending", "b begins pending false", "moved", "live a running, b pending")
	s.is("elsewhere", s.change(s.start("c", external, "")), "task/started c running", "moved", "live a running, b pending, c running")
	s.is("detached", s.change(s.start("d", detached, "")), "task/started d running", "d begins running true", "moved", "live a running, b pending, c running, d running")
	hidden := other
	hidden.Hidden = true
	s.is("hidden", s.change(s.start("e", hidden, "")), "e begins pending false", "moved", "live a running, b pending, c running, d running, e pending")
	if n := len(s.tasks.Listed()); n != 4 || !s.tasks.AnyHidden("a") || s.tasks.AnyHidden("e") {
		t.Errorf("%d tasks are listed, want 4", n)
	}
	if s.tasks.All() == nil || load(t).tasks.All() == nil {
		t.Error("no tasks are nil")
	}
}

func TestSlotIsReleasedIfTheChangeFails(t *testing.T) {
	s := load(t)
	c := change.New(change.Base{}, persistence.Commit{})
	s.start("a", other, "")(s.tasks.In(c))
	if s.room != 0 {
		t.Fatal("no place is taken")
	}
	c.Drop()
	if s.room != 1 {
		t.Error("the place is kept")
	}
}

func TestCancelTasks(t *testing.T) {
	s := load(t, running("a", other, 1), running("b", other, 2), running("c", external, 3))
	s.at["a"] = "here"
	cancel := func(id protocol.TaskID) string {
		return s.change(func(d *live.Draft) {
			found, _ := d.Find(id)
			d.Cancel(found, "me", "no need")
		})
	}
	s.is("running", cancel("a"), "task/changed a cancelRequested", "a is to end: me, no need", "moved", "live a cancelRequested, b running, c running")
	s.is("again", cancel("a"), "live a cancelRequested, b running, c running")
	s.is("without a worker", cancel("b"), "task/changed b cancelRequested", "task/completed b cancelled", "b is over", "moved", "live a cancelRequested, c running")
	s.is("elsewhere", cancel("c"), "task/changed c cancelRequested", "moved", "live a cancelRequested, c cancelRequested")
	s.is("as it begins", s.change(func(d *live.Draft) {
		s.start("d", other, "")(d)
		begun, changed := d.Changed("d")
		if _, known := d.Changed("a"); !changed || known {
			t.Error("a task of the change is not its task")
		}
		d.Cancel(begun, "me", "changed my mind")
	}), "task/started d pending", "task/changed d running", "task/changed d cancelRequested", "d is to end: me, changed my mind", "d begins running true",
		"moved", "live a cancelRequested, c cancelRequested, d cancelRequested")
	s = load(t)
	s.is("while an observing attempt starts", s.change(func(d *live.Draft) {
		s.start("a", detached, "")(d)
		begun, _ := d.Changed("a")
		d.Cancel(begun, "me", "no need")
	}), "task/started a running", "task/changed a cancelRequested", "a begins running true", "a is to end: me, no need", "moved", "live a cancelRequested")
}

func TestLoseCaller(t *testing.T) {
	part, cancelled := other, other
	part.Parent, cancelled.Parent, cancelled.ParentEnd = "a", "a", protocol.ParentEndCancel
	ofTurn, elsewhere := running("e", other, 5), running("f", other, 6)
	ofTurn.Origin.TurnID, elsewhere.Origin = "trn_a", protocol.TaskOrigin{SessionID: "ses_b", TurnID: "trn_b"}
	s := load(t, running("a", other, 1), running("b", part, 2), running("c", cancelled, 3), running("d", other, 4), ofTurn, elsewhere)
	s.is("the parent task has ended", s.change(func(d *live.Draft) {
		a, _ := s.tasks.Find("a")
		d.Add(a, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: &protocol.TaskOutcome{Kind: protocol.TaskDone}})
	}), "task/completed a completed", "task/changed b running", "task/changed c cancelRequested", "task/completed c cancelled",
		"c is over", "a is over", "moved", "live b running, d running, e running, f running")
	if b, _ := s.tasks.Find("b"); !b.CallerDeparted {
		t.Error("the part has a caller")
	}
	s.is("the starting turn has ended", s.change((*live.Draft).TurnOver), "task/changed e running", "moved", "live b running, d running, e running, f running")
	s.is("again", s.change((*live.Draft).TurnOver), "live b running, d running, e running, f running")
}

func TestResumeTasks(t *testing.T) {
	owned := protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverOwner}
	s := load(t, running("a", other, 1), running("b", owned, 2), running("c", detached, 3), running("d", external, 4), running("e", other, 5))
	s.at["e"] = "here"
	s.is("resumed", s.change((*live.Draft).Resume), "task/changed a running", "task/completed b abandoned",
		"b is over", "a begins running true", "c begins running true", "moved", "live a running, c running, d running, e running")
}

func TestMoveTasks(t *testing.T) {
	s := load(t, running("a", other, 1), running("b", other, 2))
	moving := s.tasks.All()[:1]
	s.tasks.HandOver(moving)
	if got := s.now(); got != "b running" || !s.tasks.Leaving("a") || s.tasks.Leaving("b") {
		t.Errorf("on the way, live are %s", got)
	}
	s.tasks.HandedOver(moving, false)
	if got := s.now(); got != "a running, b running" || s.tasks.Leaving("a") {
		t.Errorf("after a transfer that failed, live are %s", got)
	}
	s = load(t, running("a", other, 1), running("b", other, 2)) // the session is reloaded during the transfer
	s.tasks.HandedOver(moving, true)
	if got := s.now(); got != "b running" || s.tasks.Leaving("a") {
		t.Errorf("after the transfer, live are %s", got)
	}
	to := load(t)
	to.tasks = live.New("ses_b", "inc", to, nil)
	to.is("taken over", to.change(func(d *live.Draft) { d.TakeOver(moving[0], "ses_a") }), "task/changed a running", "moved", "live a running")
	if got := to.noted.Tasks[0]; got.From != "ses_a" || got.Task.SessionID != "ses_b" {
		t.Errorf("stored is %+v", got)
	}
}

func TestWakeByTask(t *testing.T) {
	spec := other
	spec.Label, spec.Ended = "build", &protocol.TaskWake{}
	spec.Events = []protocol.TaskEventType{{Name: "step", Wake: &protocol.TaskWake{Text: "said"}}, {Name: "half", Wake: &protocol.TaskWake{}}}
	agent := other
	agent.Subagent, agent.Ended, agent.Label = &protocol.TaskChild{Agent: "ann"}, &protocol.TaskWake{}, "agent"
	agent.Events = spec.Events[1:]
	s := load(t, running("a", spec, 1), running("b", agent, 2))
	s.is("at the end of the change", s.change(func(d *live.Draft) {
		a, _ := d.Find("a")
		a, _ = d.Add(a, protocol.TaskEvent{Kind: protocol.TaskTold, Name: "step"})
		a, _ = d.Add(a, protocol.TaskEvent{Kind: protocol.TaskTold, Name: "half", Payload: []byte(`5`)})
		if now, ok := d.Find("a"); !ok || now.Ordinal != 4 {
			t.Errorf("in the change a has %d events, want 4", now.Ordinal)
		}
		if !d.Wakes(live.WakeSource(&a)) || d.Wakes("task:a:event:9:wake") {
			t.Error("the change does not know whom it wakes")
		}
		code := 0
		d.Add(a, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: &protocol.TaskOutcome{Kind: protocol.TaskExited, ExitCode: &code}})
		b, _ := d.Find("b")
		b, _ = d.Add(b, protocol.TaskEvent{Kind: protocol.TaskTold, Name: "half", Payload: []byte(`6`)})
		d.Add(b, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: &protocol.TaskOutcome{Kind: protocol.TaskDone, Value: []byte(`"well"`)}})
		d.Wake(queue.Wake{Source: "mine"})
	}), "task/changed a running", "task/changed a running", "task/completed a completed", "task/changed b running", "task/completed b completed",
		"task:a:event:3:wake: task/step said", "task:a:event:4:wake: task/half build: 5",
		`task:a:event:5:wake: task/completed build has ended: {"kind":"exited","exitCode":0}`,
		"task:b:event:3:wake: task/half agent: 6",
		"task:b:event:4:wake: task/completed The subagent ann has ended (completed). well", "mine:  ",
		"a is over", "b is over", "moved", "live ")

	s = load(t)
	s.fails = errors.New("the store is lost")
	c := change.New(change.Base{}, persistence.Commit{})
	s.tasks.In(c).Wake(queue.Wake{})
	if err := c.Finish(); !errors.Is(err, s.fails) {
		t.Errorf("%v, want %v", err, s.fails)
	}
}

func TestLongResultIsTruncated(t *testing.T) {
	spec := other
	spec.Subagent, spec.Ended = &protocol.TaskChild{}, &protocol.TaskWake{}
	for text, want := range map[string]string{
		strings.Repeat("x", 8192): "The subagent a has ended (failed). " + strings.Repeat("x", 8192),
		strings.Repeat("é", 4097): "The subagent a has ended (failed). " + strings.Repeat("é", 4096) + "\n[truncated; call wait_agents for the full result]",
		"":                        `The subagent a has ended (failed). {"n":1}`,
	} {
		s := load(t, running("a", spec, 1))
		got := s.change(func(d *live.Draft) {
			a, _ := d.Find("a")
			d.Add(a, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: &protocol.TaskOutcome{Kind: protocol.TaskError, Message: text, Value: []byte(`{"n":1}`)}})
		})
		if !strings.Contains(got, want+"\na is over") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestFirstFailedHiddenTask(t *testing.T) {
	hidden := other
	hidden.Hidden = true
	s := load(t, running("a", hidden, 1), running("b", hidden, 2), running("c", hidden, 3), running("d", other, 4), running("e", hidden, 5))
	end := func(id protocol.TaskID, kind protocol.TaskEnd) {
		s.change(func(d *live.Draft) {
			found, _ := d.Find(id)
			d.Add(found, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: &protocol.TaskOutcome{Kind: kind}})
		})
	}
	end("d", protocol.TaskError)
	end("a", protocol.TaskDone)
	if failed := s.tasks.TakeFailedHidden(); failed != nil {
		t.Errorf("%s failed", failed.ID)
	}
	end("b", protocol.TaskLost)
	end("c", protocol.TaskError)
	if failed := s.tasks.TakeFailedHidden(); failed == nil || failed.ID != "b" {
		t.Errorf("%v failed first, want b", failed)
	}
	if failed := s.tasks.TakeFailedHidden(); failed != nil {
		t.Errorf("%s failed again", failed.ID)
	}
	end("e", protocol.TaskError)
	if failed := s.tasks.TakeFailedHidden(); failed == nil || failed.ID != "e" {
		t.Errorf("%v failed next, want e", failed)
	}
}
