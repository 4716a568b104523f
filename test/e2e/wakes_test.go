package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// wokenScene is a session that is woken by the ends of two external tasks.
type wokenScene struct {
	*world
	daemon  *daemon
	peer    *peer
	session protocol.SessionID
}

var wakers = []protocol.TaskID{"tsk_left", "tsk_right"}

// newWokenScene creates the session, whose commands need approval, and starts the tasks.
func newWokenScene(t *testing.T, delivery protocol.Delivery, steps ...fakemodel.Step) *wokenScene {
	t.Helper()
	s := &wokenScene{world: newWorld(t, "allow", steps...)}
	s.shortMemory() // makes compaction possible early
	s.daemon = s.serve()
	s.peer = s.dial("the-client")
	s.session = ask[protocol.SessionNewResult](s.peer, "session/new", protocol.SessionNewParams{Cwd: s.work, Drain: protocol.DrainMerge, Approval: &protocol.ApprovalConfig{
		Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "shell", Action: protocol.ApproveAsk}},
	}}).SessionID
	for _, id := range wakers {
		ask[protocol.TaskResult](s.peer, "task/start", protocol.TaskStartParams{SessionID: s.session, TaskID: id, Spec: protocol.TaskSpec{
			Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal,
			Ended: &protocol.TaskWake{Delivery: delivery, Merge: "both", Text: string(id) + " has ended"},
		}})
	}
	return s
}

// complete ends the tasks. A repetition has no further effect.
func (s *wokenScene) complete() {
	s.t.Helper()
	for _, id := range wakers {
		params := protocol.TaskCompleteParams{TaskParams: protocol.TaskParams{SessionID: s.session, TaskID: id}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone}}
		params.IdempotencyKey = string(id)
		ask[protocol.TaskResult](s.peer, "task/complete", params)
	}
}

// again kills the daemon, starts the next one and completes the tasks again.
func (s *wokenScene) again() {
	s.t.Helper()
	s.daemon.kill()
	s.daemon = s.serve()
	s.peer = s.dial("the-client")
	s.peer.attach(s.session, 0)
	s.complete()
}

// queued returns the queued wakes and why they are held.
func (s *wokenScene) queued() (wakes []protocol.QueuedInput, hold protocol.QueueHold) {
	s.t.Helper()
	r := ask[protocol.QueueListResult](s.peer, "queue/list", protocol.QueueListParams{SessionID: s.session})
	return slices.DeleteFunc(r.Data, func(in protocol.QueuedInput) bool { return in.Wake == nil }), r.Hold
}

// toldOf waits until the model reads both wakes at the end of a prompt.
func (s *wokenScene) toldOf() {
	s.t.Helper()
	eventually(s.t, "the model reads the wakes", func() error {
		for _, r := range s.model.Requests() {
			if m := r.Chat.Messages; strings.Contains(string(m[len(m)-1].Content), string(wakers[0])+" has ended") && strings.Contains(string(m[len(m)-1].Content), string(wakers[1])+" has ended") {
				return nil
			}
		}
		return errors.New("it is not")
	})
}

// share checks that both wakes wait for one turn, which is held for a reason, and returns that turn.
func (s *wokenScene) share(want protocol.QueueHold) protocol.TurnID {
	s.t.Helper()
	wakes, hold := s.queued()
	if hold != want {
		s.t.Errorf("runtime/P08 the queue is held for %s, want %s", hold, want)
	}
	if len(wakes) != 2 || wakes[0].TurnID != wakes[1].TurnID || wakes[0].Wake.Cause.Origin != string(wakers[0]) || wakes[1].Wake.Cause.Origin != string(wakers[1]) {
		s.t.Fatalf("runtime/P08 the queue has %+v, want both wakes in one turn", wakes)
	}
	return wakes[0].TurnID
}

// causedOnce checks that both wakes are in one turn, once, and that the turn completed.
func (s *wokenScene) causedOnce(turn protocol.TurnID, accepted int) {
	s.t.Helper()
	if r := s.peer.wait(turn); r.State != protocol.TurnCompleted {
		s.t.Errorf("runtime/B06 the turn is %s: %+v", r.State, r.Outcome)
	}
	ask[protocol.SessionWaitResult](s.peer, "session/wait", protocol.SessionWaitParams{SessionID: s.session})
	if wakes, hold := s.queued(); len(wakes) != 0 || hold != protocol.HoldEmpty {
		s.t.Errorf("runtime/P08 the queue is held for %s, with %+v", hold, wakes)
	}
	var told []string
	for _, i := range readSession(s.peer, s.session).Data {
		if i.Kind == protocol.ItemNotice {
			told = append(told, fmt.Sprint(i.TurnID, " ", i.Text))
		}
	}
	var want []string
	for _, id := range wakers {
		want = append(want, fmt.Sprintf("%s [task/completed %s] %s has ended", turn, id, id))
	}
	if !slices.Equal(told, want) {
		s.t.Errorf("runtime/B06 the history has %q, want %q", told, want)
	}
	s.toldOf()
	all := s.replay(s.session)
	n := 0
	for _, e := range all {
		if e.Type == protocol.EventTurnAccepted && len(e.Causes) > 0 {
			n++
		}
	}
	if err := errors.Join(lifeOf(all, turn), gapless(all, 1), s.model.Check()); n != accepted || err != nil {
		s.t.Errorf("runtime/B06 wakes started %d turns, want %d: %v", n, accepted, err)
	}
}

// holds are the reasons that keep the turn of a wake from starting.
var holds = []struct {
	hold  protocol.QueueHold
	steps []fakemodel.Step
	begin func(*wokenScene)
	end   func(*wokenScene) // nil if the end of the daemon ends it
}{
	{
		protocol.HoldTurn,
		[]fakemodel.Step{step(stalls, says("lost")), step(stalls, says("done"))},
		func(s *wokenScene) { s.peer.start(s.session, "go"); s.asked(1) },
		func(s *wokenScene) { s.asked(2); s.model.Release() },
	},
	{
		protocol.HoldDecision,
		[]fakemodel.Step{step(shell(once)), done},
		func(s *wokenScene) { s.peer.start(s.session, "go"); s.peer.event("the question", opened) },
		func(s *wokenScene) {
			s.peer.allow(ask[protocol.DecisionListResult](s.peer, "decision/list", protocol.DecisionListParams{SessionID: s.session}).Data[0])
		},
	},
	{
		protocol.HoldCommand,
		[]fakemodel.Step{step(says("one")), step(says("two")), to("Summarise", 0, step(stalls, says("lost")))},
		func(s *wokenScene) {
			s.peer.turn(s.session, strings.Repeat("word", 400))
			s.peer.turn(s.session, "second")
			p := s.dial("")
			go try[protocol.SessionCompactResult](p, "session/compact", protocol.SessionCompactParams{SessionID: s.session}) // fails when the daemon is killed
			s.asked(3)
		},
		nil,
	},
}

// TestWakesShareATurn has two tasks wake a session whose queue is held, and kills the daemon before
// that turn and during it.
func TestWakesShareATurn(t *testing.T) {
	for _, h := range holds {
		t.Run("runtime/B06 runtime/P08 wakes share one turn after the hold ends: "+string(h.hold), func(t *testing.T) {
			t.Parallel()
			s := newWokenScene(t, protocol.DeliverAfterTurn, append(slices.Clip(h.steps), to("ended", 0, step(stalls, says("lost"))), to("ended", 0, step(says("noted"))))...)
			h.begin(s)
			s.complete()
			turn := s.share(h.hold)
			s.again()
			if h.end != nil {
				if again := s.share(h.hold); again != turn {
					t.Errorf("runtime/P08 after a restart their turn is %s, before %s", again, turn)
				}
				h.end(s)
			}
			s.toldOf()
			s.again()
			s.causedOnce(turn, 1)
			for _, x := range ask[protocol.SessionListResult](s.peer, "session/list", protocol.SessionListParams{Children: true}).Data {
				if x.Relation.Temporary {
					t.Errorf("%s still exists after a restart, though no request waits for it: %q", x.ID, x.Title)
				}
			}
		})
	}
}

// TestWakesEnterATurn has two tasks wake a session at a checkpoint of its running turn, and kills the
// daemon after it.
func TestWakesEnterATurn(t *testing.T) {
	t.Parallel()
	s := newWokenScene(t, protocol.DeliverEarliest, step(uses("read_output", map[string]any{"task": "tsk_gate", "waitMs": 30_000})), step(stalls, says("lost")), done)
	ask[protocol.TaskResult](s.peer, "task/start", protocol.TaskStartParams{SessionID: s.session, TaskID: "tsk_gate", Spec: protocol.TaskSpec{
		Kind: protocol.TaskCommand, Recovery: protocol.RecoverRerun, Command: &protocol.TaskShell{Script: "while [ ! -e go ]; do sleep 0.02; done"},
	}})
	turn := s.peer.start(s.session, "go").TurnID
	s.peer.event("the call", callStarted)
	s.complete()
	if entered := s.share(protocol.HoldTurn); entered != turn {
		t.Errorf("runtime/P08 they wait for turn %s, want the running %s", entered, turn)
	}
	s.write(filepath.Join(s.work, "go"), "")
	s.toldOf()
	s.again()
	s.causedOnce(turn, 0)
}
