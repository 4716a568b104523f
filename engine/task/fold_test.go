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
		{"one that never began is begun", protocol.RecoverOwner, nil, true, "", ""},
		{"one bound to its daemon is given up", protocol.RecoverOwner, []protocol.TaskEvent{began}, false, protocol.TaskLost, protocol.WriterSweep},
		{"one bound to its daemon that was asked to end is given up too: nobody knows whether it did", protocol.RecoverOwner, []protocol.TaskEvent{began, cancel}, false, protocol.TaskLost, protocol.WriterSweep},
		{"one that may run again does", protocol.RecoverRerun, []protocol.TaskEvent{began, began}, true, "", ""},
		{"but not more often than it may", protocol.RecoverRerun, []protocol.TaskEvent{began, began, began}, false, protocol.TaskLost, protocol.WriterExhausted},
		{"and not once it was asked to end", protocol.RecoverRerun, []protocol.TaskEvent{began, cancel}, false, protocol.TaskStopped, ""},
		{"one that never began ends when it is asked to", protocol.RecoverOwner, []protocol.TaskEvent{cancel}, false, protocol.TaskStopped, ""},
		{"one that runs elsewhere is left alone", protocol.RecoverExternal, []protocol.TaskEvent{cancel}, false, "", ""},
		{"unless it is to be given up", protocol.RecoverExternal, []protocol.TaskEvent{{Kind: protocol.TaskGotAbandonRequest, By: "cli_a"}}, false, protocol.TaskLost, protocol.WriterRequest},
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
	t.Run("runtime/B01 what is over stays as it is", func(t *testing.T) {
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
	t.Run("runtime/B01 an event that is not the next one is not taken", func(t *testing.T) {
		task := created(protocol.RecoverRerun)
		for _, ordinal := range []int{0, 1, 3} {
			if _, ok := Apply(task, protocol.TaskEvent{Ordinal: ordinal, Kind: protocol.TaskWasStarted}); ok {
				t.Errorf("event %d follows event 1", ordinal)
			}
		}
	})
	t.Run("runtime/B01 time does not run backwards in a task", func(t *testing.T) {
		if e := Next(&over, ended, 5); e.AtMs != 20 {
			t.Errorf("after 20 comes %d", e.AtMs)
		}
	})
}
