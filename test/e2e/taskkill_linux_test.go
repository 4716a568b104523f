package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"lashd/rpc/protocol"
)

const killedTask = protocol.TaskID("tsk_killed")

// taskScene is a task whose daemon is killed.
type taskScene struct {
	*world
	daemon  *daemon
	peer    *peer
	session protocol.SessionID
	spec    protocol.TaskSpec
	unlock  func() // releases the database
}

// came is the outcome of a task and the number of its runs.
type came struct {
	state   protocol.TaskState
	kind    protocol.TaskEnd
	writer  protocol.TaskWriter
	attempt int
	ran     int
}

var (
	wellOnce    = came{protocol.TaskCompleted, protocol.TaskExited, "", 1, 1}
	wellAgain   = came{protocol.TaskCompleted, protocol.TaskExited, "", 2, 2}
	lostByOwner = came{protocol.TaskAbandoned, protocol.TaskLost, protocol.WriterSweep, 1, 1}
	saidDone    = came{protocol.TaskCompleted, protocol.TaskDone, "", 0, 0}
)

// moments are the moments of the kill in the life of a task, with the expected outcome under each
// contract.
var moments = []struct {
	name                  string
	reach                 func(*taskScene)
	owner, again, outside came
}{
	{"when it was requested and is not stored", (*taskScene).unstored, wellOnce, wellOnce, saidDone},
	{"while it runs", (*taskScene).running, lostByOwner, wellAgain, saidDone},
	{"once its cancellation is requested", (*taskScene).ending, lostByOwner, came{protocol.TaskCancelled, protocol.TaskStopped, "", 1, 1}, saidDone},
	{"when it has ended and the end is not stored", (*taskScene).unheard, lostByOwner, wellAgain, saidDone},
	{"when it has ended and its session is not woken yet", (*taskScene).ended, wellOnce, wellOnce, saidDone},
}

func TestTasksKilledAtEachMoment(t *testing.T) {
	for _, m := range moments {
		for _, c := range []struct {
			recovery protocol.TaskRecovery
			want     came
		}{{protocol.RecoverOwner, m.owner}, {protocol.RecoverRerun, m.again}, {protocol.RecoverExternal, m.outside}} {
			t.Run(fmt.Sprintf("issue/5-1 runtime/B02 %s %s", c.recovery, m.name), func(t *testing.T) {
				t.Parallel()
				s := newTaskScene(t, c.recovery)
				m.reach(s)
				s.daemon.kill()
				s.next()
				s.came(c.want)
				s.nothingLeft()
			})
		}
	}
}

func newTaskScene(t *testing.T, recovery protocol.TaskRecovery) *taskScene {
	s := &taskScene{world: newWorld(t, "allow"), unlock: func() {}}
	s.daemon = s.serve()
	s.peer = s.dial("the-client")
	s.session = s.peer.session(s.home)
	s.spec = protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: recovery, Ended: &protocol.TaskWake{}}
	if recovery != protocol.RecoverExternal {
		s.spec.Kind = protocol.TaskCommand
		s.spec.Command = &protocol.TaskShell{
			Script: `trap "" TERM; printf x >> ran; while [ ! -e go ]; do sleep 0.02; done`,
			Env:    map[string]string{"LASHD_E2E_KILLED": s.dir},
		}
	}
	return s
}

func (s *taskScene) runsHere() bool { return s.spec.Recovery != protocol.RecoverExternal }

// mark identifies processes of the command.
func (s *taskScene) mark() string { return "LASHD_E2E_KILLED=" + s.dir }

func (s *taskScene) params() protocol.TaskParams {
	return protocol.TaskParams{SessionID: s.session, TaskID: killedTask}
}

// start requests the task. A repetition has no further effect.
func (s *taskScene) start() error {
	_, err := try[protocol.TaskResult](s.peer, "task/start", protocol.TaskStartParams{SessionID: s.session, TaskID: killedTask, Spec: s.spec})
	return err
}

// complete completes a task that runs elsewhere. A repetition has no further effect.
func (s *taskScene) complete() error {
	params := protocol.TaskCompleteParams{TaskParams: s.params(), Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone}}
	params.IdempotencyKey = "complete"
	_, err := try[protocol.TaskResult](s.peer, "task/complete", params)
	return err
}

// lets releases the command, which then ends.
func (s *taskScene) lets() { s.write(filepath.Join(s.work, "go"), "") }

func (s *taskScene) unstored() { s.unlock = s.unanswered(s.start) }

// running is reached once the command has created its file.
func (s *taskScene) running() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatal(err)
	}
	if s.runsHere() {
		eventually(s.t, "the command runs", func() error {
			if s.size("ran") == 0 {
				return errors.New("it does not")
			}
			return nil
		})
	}
}

// ending is reached once the cancellation is stored. The command ignores it for a while.
func (s *taskScene) ending() {
	s.running()
	r := ask[protocol.TaskResult](s.peer, "task/cancel", protocol.TaskCancelParams{TaskParams: s.params(), Reason: "enough"})
	if r.Task.State != protocol.TaskCancelRequested {
		s.t.Errorf("after the cancellation it is %+v", r.Task)
	}
}

// unheard is reached once the command has ended, or a client has completed the task, while nothing can
// be stored.
func (s *taskScene) unheard() {
	s.running()
	if !s.runsHere() {
		s.unlock = s.unanswered(s.complete)
		return
	}
	s.unlock = s.locked()
	s.lets()
	unmarked(s.t, s.mark())
}

func (s *taskScene) ended() {
	s.running()
	s.lets()
	if !s.runsHere() {
		if err := s.complete(); err != nil {
			s.t.Fatal(err)
		}
	}
	s.peer.event("task/completed", func(e protocol.Event) bool { return e.Type == protocol.EventTaskCompleted })
}

// next starts a daemon and repeats the unacknowledged request, as a client would.
func (s *taskScene) next() {
	s.t.Helper()
	s.unlock()
	s.daemon = s.serve()
	s.peer = s.dial("the-client")
	s.peer.attach(s.session, 0)
	s.lets()
	if err := s.start(); err != nil {
		s.t.Fatal(err)
	}
	if s.runsHere() {
		return
	}
	if err := s.complete(); err != nil {
		if _, kind := refusal(err); kind != protocol.KindTaskEnded {
			s.t.Fatal(err)
		}
	}
}

// came waits for the end of the task and for the turn that it causes.
func (s *taskScene) came(want came) {
	s.t.Helper()
	ask[protocol.TaskWaitResult](s.peer, "task/wait", protocol.TaskWaitParams{SessionID: s.session, TaskIDs: []protocol.TaskID{killedTask}})
	t := ask[protocol.TaskReadResult](s.peer, "task/read", protocol.TaskReadParams{TaskParams: s.params()}).Task
	got := came{state: t.State, attempt: t.Attempt, ran: s.size("ran")}
	if t.Outcome != nil {
		got.kind = t.Outcome.Kind
		if e := t.Outcome.Evidence; e != nil {
			got.writer = e.Writer
		}
	}
	if got != want {
		s.t.Errorf("got %+v, %+v; want %+v", got, t.Outcome, want)
	}
	ask[protocol.SessionWaitResult](s.peer, "session/wait", protocol.SessionWaitParams{SessionID: s.session})
	all := s.replay(s.session)
	var woken []protocol.TurnID
	for _, e := range all {
		if e.Type == protocol.EventTurnAccepted && len(e.Causes) > 0 && e.Causes[0].Origin == string(killedTask) {
			woken = append(woken, e.TurnID)
		}
	}
	if len(woken) != 1 {
		s.t.Fatalf("runtime/B06 its end caused the turns %v, want one", woken)
	}
	if err := errors.Join(lifeOf(all, woken[0]), gapless(all, 1)); err != nil {
		s.t.Error(err)
	}
	if n := lives(all, killedTask); n != [2]int{1, 1} {
		s.t.Errorf("it started and ended %v times", n)
	}
}

// nothingLeft stops the daemon and checks what it leaves behind.
func (s *taskScene) nothingLeft() {
	s.t.Helper()
	unmarked(s.t, s.mark())
	s.daemon.stop()
	db := s.database("ro")
	if err := errors.Join((&inspection{db: db, dir: s.dir}).all(), over(db)); err != nil {
		s.t.Error(err)
	}
}
