package task

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"lashd/rpc/protocol"
)

// anyEvent returns an event that may or may not be allowed.
func anyEvent(r *rapid.T, ordinal int) protocol.TaskEvent {
	sessions := rapid.SampledFrom([]protocol.SessionID{"ses_a", "ses_b", "ses_c"})
	e := protocol.TaskEvent{
		Kind: rapid.SampledFrom([]protocol.TaskEventKind{
			protocol.TaskWasCreated, protocol.TaskWasStarted, protocol.TaskWasWaiting, protocol.TaskWasResumed, protocol.TaskGotRef, protocol.TaskGotCancelRequest,
			protocol.TaskGotAbandonRequest, protocol.TaskLostCaller, protocol.TaskGotObserver, protocol.TaskLostObserver, protocol.TaskWasTransferred, protocol.TaskTold,
			protocol.TaskWasEnded, "nonsense",
		}).Draw(r, "kind"),
		Ordinal: ordinal + rapid.SampledFrom([]int{0, 1, 1, 1, 1, 1, 1, 2}).Draw(r, "step"), AtMs: rapid.Int64Range(0, 100).Draw(r, "at"),
		SessionID: sessions.Draw(r, "session"), Ref: rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "ref"), Reason: "why", By: "cli_a",
	}
	if rapid.Bool().Draw(r, "whole") {
		e.Origin = &protocol.TaskOrigin{SessionID: "ses_a"}
		e.Spec = &protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: rapid.SampledFrom([]protocol.TaskRecovery{protocol.RecoverRerun, protocol.RecoverOwner, protocol.RecoverExternal}).Draw(r, "recovery")}
		e.Outcome = &protocol.TaskOutcome{Kind: rapid.SampledFrom([]protocol.TaskEnd{protocol.TaskDone, protocol.TaskError, protocol.TaskStopped, protocol.TaskLost, protocol.TaskExited}).Draw(r, "end")}
	}
	return e
}

// reloaded returns an event after a round trip through JSON.
func reloaded(r *rapid.T, e protocol.TaskEvent) (again protocol.TaskEvent) {
	body, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(body, &again)
	}
	if err != nil {
		r.Fatal(err)
	}
	return again
}

func TestFoldOfRandomEvents(t *testing.T) {
	t.Run("runtime/B01 a task is always the fold of its accepted events, and a final task does not change", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			now := protocol.Task{ID: "tsk_a"}
			var taken []protocol.TaskEvent
			for range rapid.IntRange(1, 40).Draw(r, "events") {
				before := now
				e := anyEvent(r, now.Ordinal)
				next, ok := Apply(now, e)
				switch {
				case !ok && !reflect.DeepEqual(next, before):
					r.Fatalf("%s is refused, and changes %+v to %+v", e.Kind, before, next)
				case ok && before.State.Final():
					r.Fatalf("%s happens to a task that is %s", e.Kind, before.State)
				case ok && (next.Ordinal != before.Ordinal+1 || next.State.Final() != (e.Kind == protocol.TaskWasEnded) || next.State == ""):
					r.Fatalf("after %s: %+v", e.Kind, next)
				case ok && before.State != "" && (next.SessionID != before.SessionID) != (e.Kind == protocol.TaskWasTransferred):
					r.Fatalf("%s takes it from %s to %s", e.Kind, before.SessionID, next.SessionID)
				case ok && before.State == protocol.TaskCancelRequested && !next.State.Final() && next.State != protocol.TaskCancelRequested:
					r.Fatalf("%s makes one that is asked to end %s", e.Kind, next.State)
				}
				if ok {
					taken = append(taken, reloaded(r, e))
				}
				now = next
				if again, err := Fold("tsk_a", taken); err != nil || !reflect.DeepEqual(again, now) {
					r.Fatalf("read again it is %+v, %v; it was %+v", again, err, now)
				}
			}
		})
	})
}
