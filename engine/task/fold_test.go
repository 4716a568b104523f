package task

import (
	"testing"

	"lashd/rpc/protocol"
)

func created(recovery protocol.TaskRecovery) protocol.Task {
	t, ok := Apply(protocol.Task{ID: "t"}, protocol.TaskEvent{
		Ordinal: 1, AtMs: 10, Kind: protocol.TaskWasCreated, SessionID: "s", Spec: &protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: recovery}, Origin: &protocol.TaskOrigin{SessionID: "s"},
	})
	if !ok {
		panic("a task is not created")
	}
	return t
}

func with(t protocol.Task, events ...protocol.TaskEvent) protocol.Task {
	for _, e := range events {
		t, _ = Apply(t, Next(&t, e, 20))
	}
	return t
}

func TestRecover(t *testing.T) {
	began := protocol.TaskEvent{Kind: protocol.TaskWasStarted, Incarnation: "i"}
	cancel := protocol.TaskEvent{Kind: protocol.TaskGotCancelRequest, By: "cli_a"}
	for _, c := range []struct {
		name     string
		recovery protocol.TaskRecovery
		events   []protocol.TaskEvent
		run      bool
		end      protocol.TaskEnd
		writer   protocol.TaskWriter
	}{
		{"a task without attempts is started", protocol.RecoverOwner, nil, true, "", ""},
		{"an owner-bound task is abandoned", protocol.RecoverOwner, []protocol.TaskEvent{began}, false, protocol.TaskLost, protocol.WriterSweep},
		{"an owner-bound task with a cancel request is abandoned too, because its outcome is unknown", protocol.RecoverOwner, []protocol.TaskEvent{began, cancel}, false, protocol.TaskLost, protocol.WriterSweep},
		{"a rerunnable task gets another attempt", protocol.RecoverRerun, []protocol.TaskEvent{began, began}, true, "", ""},
		{"a rerunnable task without attempts left is abandoned", protocol.RecoverRerun, []protocol.TaskEvent{began, began, began}, false, protocol.TaskLost, protocol.WriterExhausted},
		{"a rerunnable task with a cancel request is stopped", protocol.RecoverRerun, []protocol.TaskEvent{began, cancel}, false, protocol.TaskStopped, ""},
		{"a task without attempts stops on a cancel request", protocol.RecoverOwner, []protocol.TaskEvent{cancel}, false, protocol.TaskStopped, ""},
		{"an external task is left alone", protocol.RecoverExternal, []protocol.TaskEvent{cancel}, false, "", ""},
		{"an external task with an abandon request is abandoned", protocol.RecoverExternal, []protocol.TaskEvent{{Kind: protocol.TaskGotAbandonRequest, By: "cli_a"}}, false, protocol.TaskLost, protocol.WriterRequest},
	} {
		t.Run("runtime/B02 "+c.name, func(t *testing.T) {
			task := with(created(c.recovery), c.events...)
			v := Recover(&task)
			if v.Run != c.run || (v.End != nil) != (c.end != "") {
				t.Fatalf("%+v", v)
			}
			if v.End == nil {
				return
			}
			if v.End.Kind != c.end || c.writer != "" && v.End.Evidence.Writer != c.writer {
				t.Errorf("%+v %+v", v.End, v.End.Evidence)
			}
		})
	}
}

func TestFold(t *testing.T) {
	ended := protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: &protocol.TaskOutcome{Kind: protocol.TaskDone}}
	over := with(created(protocol.RecoverRerun), protocol.TaskEvent{Kind: protocol.TaskWasStarted}, ended)
	t.Run("runtime/B01 a final task does not change", func(t *testing.T) {
		for kind := range map[protocol.TaskEventKind]bool{
			protocol.TaskWasStarted: true, protocol.TaskWasWaiting: true, protocol.TaskWasResumed: true, protocol.TaskGotCancelRequest: true, protocol.TaskWasEnded: true,
			protocol.TaskTold: true, protocol.TaskWasTransferred: true, protocol.TaskGotObserver: true, protocol.TaskLostCaller: true, protocol.TaskGotAbandonRequest: true,
		} {
			e := protocol.TaskEvent{Kind: kind, SessionID: "other", Outcome: &protocol.TaskOutcome{Kind: protocol.TaskError}}
			if next, ok := Apply(over, Next(&over, e, 30)); ok || next.State != protocol.TaskCompleted || next.Ordinal != over.Ordinal {
				t.Errorf("%s makes it %+v", kind, next)
			}
		}
	})
	t.Run("runtime/B01 an event with the wrong ordinal is rejected", func(t *testing.T) {
		task := created(protocol.RecoverRerun)
		for _, ordinal := range []int{0, 1, 3} {
			if _, ok := Apply(task, protocol.TaskEvent{Ordinal: ordinal, Kind: protocol.TaskWasStarted}); ok {
				t.Errorf("event %d follows event 1", ordinal)
			}
		}
	})
	t.Run("runtime/B01 the time of events never decreases", func(t *testing.T) {
		if e := Next(&over, ended, 5); e.AtMs != 20 {
			t.Errorf("after 20 comes %d", e.AtMs)
		}
	})
}

func TestForgedRefusals(t *testing.T) {
	t.Run("part11/network only commands that lashd runs in a sandbox keep a refusal of it", func(t *testing.T) {
		for _, c := range []struct {
			spec protocol.TaskSpec
			want bool
		}{
			{protocol.TaskSpec{Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Sandbox: protocol.SandboxWorkspace}}, true},
			{protocol.TaskSpec{Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{}}, false},
			{protocol.TaskSpec{Recovery: protocol.RecoverExternal, Command: &protocol.TaskShell{Sandbox: protocol.SandboxWorkspace}}, false},
			{protocol.TaskSpec{Recovery: protocol.RecoverOwner, Handler: "work"}, false},
		} {
			out := &protocol.TaskOutcome{Kind: protocol.TaskDone, Refusal: &protocol.SandboxRefusal{What: "x"}}
			e := Next(&protocol.Task{Spec: c.spec}, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: out}, 1)
			if (e.Outcome.Refusal != nil) != c.want || out.Refusal == nil {
				t.Errorf("%+v keeps %+v, want %v", c.spec, e.Outcome.Refusal, c.want)
			}
		}
	})
}
