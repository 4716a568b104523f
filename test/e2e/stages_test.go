package e2e

import (
	"cmp"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// stage is a moment of a turn at which the daemon is killed, with what happens before and after, and
// the expected result.
type stage struct {
	name     string
	approval string // default allow
	steps    []fakemodel.Step
	prepare  func(*scene)          // runs before the turn starts
	reached  func(*scene)          // returns when the turn has reached the stage
	killed   func(*scene)          // runs while there is no daemon
	after    func(*scene)          // runs once the next daemon serves
	calls    int                   // expected model calls in total
	lost     int                   // model calls whose reply was cut off
	ran      int                   // expected runs of the command
	tools    int                   // expected tool calls in the report
	result   protocol.OutputStatus // status of the first one; default success
}

// scene is a turn that is killed at a stage.
type scene struct {
	*world
	peer    *peer
	daemon  *daemon
	session protocol.SessionID
	turn    protocol.TurnID
	more    []protocol.TurnID // other turns, which must complete
	call    protocol.CallID   // a call that a client was asked to make
	unlock  func()            // releases the database
}

const once = "printf x >> ran"

var (
	done = step(says("done"))
	runs = step(says("I run it."), shell(once))
)

func TestKilledAtEachStage(t *testing.T) {
	for _, stages := range [][]stage{modelStages, toolStages, outcomeStages(), waitingStages()} {
		for _, st := range stages {
			t.Run(st.name, func(t *testing.T) {
				t.Parallel()
				st.play(t)
			})
		}
	}
}

// play runs a turn, kills the daemon at the stage, starts another and checks the result.
func (st stage) play(t *testing.T) {
	if st.approval == "" {
		st.approval = "allow"
	}
	s := &scene{world: newWorld(t, st.approval, st.steps...)}
	s.begin()
	st.do(s, st.prepare)
	s.turn = s.peer.start(s.session, "go").TurnID
	st.do(s, st.reached)
	s.daemon.kill()
	before := s.peer.log(s.session)
	st.do(s, st.killed)
	s.restart()
	st.do(s, st.after)
	report := s.peer.wait(s.turn)
	s.finished(report)
	st.ended(s, report)
	st.paid(s)
	s.told(before)
	s.goesOn()
}

func (stage) do(s *scene, f func(*scene)) {
	if f != nil {
		f(s)
	}
}

func (s *scene) begin() {
	s.daemon = s.serve()
	s.peer = s.dial("the-client")
	s.session = s.peer.session(s.home)
}

// restart starts the next daemon and attaches after the client's last event.
func (s *scene) restart() {
	s.t.Helper()
	var after protocol.Seq // 0 if the kill came before the first event
	if seen := s.peer.log(s.session); len(seen) > 0 {
		after = seen[len(seen)-1].Seq
	}
	s.door.open()
	s.daemon = s.serve()
	s.peer = s.dial("the-client")
	if r := s.peer.attach(s.session, after); r.Gap != nil {
		s.t.Errorf("reliability/I9 a cursor of the previous daemon gets a gap: %+v", r.Gap)
	}
}

func (s *scene) finished(report protocol.TurnReport) {
	s.t.Helper()
	if report.State != protocol.TurnCompleted || report.Output == nil || report.Output.Safe != "done" {
		s.t.Errorf("reliability/I3 the turn is %s: %+v, output %+v", report.State, report.Outcome, report.Output)
	}
	for _, id := range s.more {
		if r := s.peer.wait(id); r.State != protocol.TurnCompleted {
			s.t.Errorf("reliability/I3 the turn after it is %s: %+v", r.State, r.Outcome)
		}
	}
}

// ended checks how often each side effect happened, and the result that the model reads.
func (st stage) ended(s *scene, report protocol.TurnReport) {
	s.t.Helper()
	if len(report.ToolCalls) != st.tools || s.size("ran") != st.ran {
		s.t.Errorf("reliability/I4 %d tool calls, and the command ran %d times; want %d and %d", len(report.ToolCalls), s.size("ran"), st.tools, st.ran)
		return
	}
	if st.tools == 0 {
		return
	}
	if out, want := report.ToolCalls[0].Output, cmp.Or(st.result, protocol.OutputSuccess); out.Status != want {
		s.t.Errorf("reliability/P9 the call returned %+v, want %s", out, want)
	}
}

// paid checks the number of model calls, and that the ledger contains all of them.
func (st stage) paid(s *scene) {
	s.t.Helper()
	if n := len(s.model.Requests()); n != st.calls {
		s.t.Errorf("reliability/P6 the model was called %d times, want %d", n, st.calls)
	}
	if err := s.model.Check(); err != nil {
		s.t.Error(err)
	}
	used := ask[protocol.UsageReadResult](s.peer, "usage/read", protocol.UsageReadParams{SessionID: s.session})
	whole := int64(st.calls - st.lost)
	want := protocol.Usage{Input: whole * inputTokens, Output: whole * outputTokens}
	if used.Total != want || len(used.Data) != 1 {
		s.t.Errorf("runtime/S14 the ledger sums to %+v in %d rows, want %+v in 1", used.Total, len(used.Data), want)
		return
	}
	if row := used.Data[0]; row.Calls < int64(st.calls) || row.Calls-row.Unknown != whole {
		s.t.Errorf("runtime/S14 the ledger has %d calls, %d of them with unknown usage; %d were made, %d to the end", row.Calls, row.Unknown, st.calls, whole)
	}
}

// told checks that the log has no gaps, contains what a client received before the kill, and has one
// start and one end for each turn.
func (s *scene) told(before []told) {
	s.t.Helper()
	all := s.replay(s.session)
	if err := gapless(all, 1); err != nil {
		s.t.Error("reliability/I2", err)
	}
	if err := repeats(all, before); err != nil {
		s.t.Error("reliability/I9", err)
	}
	if err := repeats(all, s.peer.log(s.session)); err != nil {
		s.t.Error("reliability/I9 after the restart:", err)
	}
	for _, id := range append(s.more, s.turn) {
		if err := lifeOf(all, id); err != nil {
			s.t.Error("reliability/I3", err)
		}
	}
}

// goesOn checks that the session can run another turn.
func (s *scene) goesOn() {
	s.t.Helper()
	s.model.Push(step(says("and on")))
	if got := s.peer.turn(s.session, "on").Output.Safe; got != "and on" {
		s.t.Errorf("reliability/I14 the next turn answers %q", got)
	}
}
