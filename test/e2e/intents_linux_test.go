package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

type postArgs struct {
	Dir     string                `json:"dir"`
	Intents []protocol.ToolIntent `json:"intents"`
}

// wishes has one intent of each kind, and one that is invalid.
var wishes = []protocol.ToolIntent{
	{StartTask: &protocol.StartTaskIntent{TaskID: "tsk_made", Spec: protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal}}},
	{SignalTask: &protocol.SignalTaskIntent{TaskID: "tsk_ear", Name: "stdin", Payload: json.RawMessage(`{"text":"x"}`)}},
	{CancelTask: &protocol.CancelTaskIntent{TaskID: "tsk_long", Reason: "enough"}},
	{EmitTaskEvent: &protocol.TaskEventIntent{TaskID: "tsk_news", Name: "news"}},
	{EmitTrigger: &protocol.EmitTriggerIntent{Type: "mail.new", Payload: json.RawMessage(`{"from":"ada"}`)}},
	{CancelTask: &protocol.CancelTaskIntent{TaskID: "tsk_none"}},
}

// wishScene is a turn whose tool returns intents and whose daemon is killed.
type wishScene struct {
	*world
	daemon  *daemon
	peer    *peer
	session protocol.SessionID
	turn    protocol.TurnID
	unlock  func()
}

// wishMoments are the moments of the kill, with the expected effect on the intents.
var wishMoments = []struct {
	name, replay string
	reach        func(*wishScene)
	after        func(*wishScene)
	ran          int // times that the tool runs
	done         bool
}{
	{"when a repeatable tool has returned, before its result is stored", "idempotent", (*wishScene).unstored, nil, 2, true},
	{"when a tool that must not be repeated has returned, before its result is stored", "never", (*wishScene).unstored, (*wishScene).tells, 1, false},
	{"when its result is stored and another call of its batch runs", "never", (*wishScene).beside, nil, 1, true},
	{"as soon as all results of its batch are stored", "never", (*wishScene).stored, nil, 1, true},
	{"while the model reads its result", "never", (*wishScene).read, nil, 1, true},
}

// TestWishesOfAProcess has a tool of a plugin process return intents, and kills the daemon around that
// moment.
func TestWishesOfAProcess(t *testing.T) {
	for _, m := range wishMoments {
		t.Run("runtime/T12 intents of a tool take effect once, killed "+m.name, func(t *testing.T) {
			t.Parallel()
			s := newWishScene(t, m.replay)
			m.reach(s)
			s.daemon.kill()
			s.unlock()
			s.serve()
			s.peer = s.dial("the-client")
			s.peer.attach(s.session, 0)
			s.lets("gate")
			if m.after != nil {
				m.after(s)
			}
			s.told(m.done)
			s.came(m.done)
			if n := s.size("ran"); n != m.ran {
				t.Errorf("runtime/T12 the tool ran %d times, want %d", n, m.ran)
			}
		})
	}
}

func newWishScene(t *testing.T, replay string) *wishScene {
	t.Helper()
	s := &wishScene{world: newWorld(t, "allow"), unlock: func() {}}
	s.post(replay)
	batch := step(uses("post", postArgs{s.work, wishes}), uses("read_output", map[string]any{"task": "tsk_gate", "waitMs": 30_000}))
	s.model.Push(to("go", 0, batch), to("go", 2, done), to("go", 2, done))
	for range 4 { // two starts are needed, and some may hit a kill
		s.model.Push(to("tell", 0, step(says("noted"))))
	}
	s.daemon = s.serve()
	s.peer = s.dial("the-client")
	s.peer.loads("post", nil)
	s.session = s.peer.session(s.home)
	wake := &protocol.TaskWake{Text: "tell of news"}
	for id, spec := range map[protocol.TaskID]protocol.TaskSpec{
		"tsk_ear": {
			Kind: protocol.TaskCommand, Recovery: protocol.RecoverRerun, Close: protocol.CloseCancel, Command: &protocol.TaskShell{Script: "exec cat >> heard"},
		},
		"tsk_gate": {
			Kind: protocol.TaskCommand, Recovery: protocol.RecoverRerun, Command: &protocol.TaskShell{Script: "while [ ! -e gate ]; do sleep 0.02; done"},
		},
		"tsk_long": {Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal},
		"tsk_news": {Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Events: []protocol.TaskEventType{{Name: "news", Wake: wake}}},
	} {
		ask[protocol.TaskResult](s.peer, "task/start", protocol.TaskStartParams{SessionID: s.session, TaskID: id, Spec: spec})
	}
	s.waitsForMail(s.session)
	s.turn = s.peer.start(s.session, "go").TurnID
	eventually(t, "the tool runs", func() error {
		if s.size("ran") == 0 {
			return fmt.Errorf("it does not run")
		}
		return nil
	})
	return s
}

// lets releases the calls that wait for these signals.
func (s *wishScene) lets(signs ...string) {
	for _, name := range signs {
		s.write(filepath.Join(s.work, name), "")
	}
}

func (s *wishScene) unstored() {
	s.unlock = s.locked()
	s.lets("go")
	time.Sleep(50 * time.Millisecond) // gives the answer time to reach the daemon
}

func (s *wishScene) beside() {
	s.lets("go")
	db := s.database("ro")
	eventually(s.t, "the result is stored", func() error {
		if n := number(s.t, db, "SELECT count(*) FROM effects WHERE kind = 'call' AND state = 'finished'"); n != 1 {
			return fmt.Errorf("%d results stored", n)
		}
		return nil
	})
}

func (s *wishScene) stored() {
	s.lets("go", "gate")
	s.peer.event("the result", func(e protocol.Event) bool {
		return e.Type == protocol.EventItemCompleted && e.Item.Kind == protocol.ItemToolCall
	})
}

func (s *wishScene) read() {
	s.lets("go", "gate")
	s.asked(2)
}

// tells answers the decision: the model shall learn of the unknown outcome.
func (s *wishScene) tells() {
	d := s.peer.event("the question", opened).Decision
	ask[protocol.DecisionRespondResult](s.peer, "decision/respond", protocol.DecisionRespondParams{DecisionID: d.ID, Choice: protocol.ChooseTellModel})
}

// told checks what the result of the call says about the intents.
func (s *wishScene) told(done bool) {
	s.t.Helper()
	var got, want []string
	calls := s.peer.wait(s.turn).ToolCalls
	if len(calls) != 2 || calls[0].Name != "post" {
		s.t.Fatalf("the turn's calls are %+v", calls)
	}
	for _, out := range calls[0].Output.Intents {
		got = append(got, fmt.Sprint(out.Kind, " ", out.TaskID, " ", out.Refused))
	}
	if done {
		want = []string{"startTask tsk_made ", "signalTask tsk_ear ", "cancelTask tsk_long ", "emitTaskEvent tsk_news ", "emitTrigger  ", "cancelTask tsk_none taskNotFound"}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("runtime/T12 the result reports the intents %q, want %q", got, want)
	}
}

// came checks that each intent took effect once, or none did.
func (s *wishScene) came(done bool) {
	s.t.Helper()
	wanted := 0
	if done {
		wanted = 1
		s.peer.turns(s.session, 3)
	}
	ask[protocol.SessionWaitResult](s.peer, "session/wait", protocol.SessionWaitParams{SessionID: s.session})
	got := map[string]int{"task/news": 0, "trigger": 0}
	for _, e := range s.replay(s.session) {
		if e.Type == protocol.EventTurnAccepted && len(e.Causes) > 0 {
			got[e.Causes[0].Type]++
		}
	}
	got["made"] = s.happened("tsk_made", protocol.TaskWasCreated)
	got["cancelled"] = s.happened("tsk_long", protocol.TaskGotCancelRequest)
	got["news"] = s.happened("tsk_news", protocol.TaskTold)
	got["mail"] = len(ask[protocol.TriggerHistoryResult](s.peer, "trigger/history", protocol.TriggerHistoryParams{Type: "mail.new"}).Data)
	for what, n := range got {
		if n != wanted {
			s.t.Errorf("runtime/T12 runtime/B06 %s happened %d times, want %d", what, n, wanted)
		}
	}
	if n := s.size("heard"); n > wanted { // the signal is for the process that was running
		s.t.Errorf("runtime/T12 a task was sent a signal %d times", n)
	}
}

// happened returns how often an event occurred for a task; 0 for an unknown task.
func (s *wishScene) happened(id protocol.TaskID, kind protocol.TaskEventKind) (n int) {
	s.t.Helper()
	r, err := try[protocol.TaskReadResult](s.peer, "task/read", protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: s.session, TaskID: id}})
	if err != nil && !strings.Contains(err.Error(), string(id)) {
		s.t.Fatal(err)
	}
	for _, e := range r.Events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}
