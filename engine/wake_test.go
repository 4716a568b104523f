package engine_test

import (
	"slices"
	"testing"

	"lashd/engine"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// over is a wake about a task that is over.
func over(task string) engine.Wake {
	return engine.Wake{
		Source: "task:" + task + ":event:3:wake", Delivery: protocol.DeliverAfterTurn,
		Cause: protocol.TurnCause{ID: "task:" + task + ":event:3", Type: "task/completed", Origin: task, Text: task + " is over"},
	}
}

// wake has a session take a wake.
func (d *daemon) wake(t testing.TB, id protocol.SessionID, w engine.Wake) protocol.QueuedInput {
	t.Helper()
	in, refused, err := d.WakeSession(t.Context(), id, w)
	if err != nil || refused != "" {
		t.Fatalf("wake %s: refused as %q, %v", w.Source, refused, err)
	}
	return in
}

func (d *daemon) refusal(t testing.TB, id protocol.SessionID, w engine.Wake) (protocol.QueuedInput, protocol.WakeRefusal) {
	t.Helper()
	in, refused, err := d.WakeSession(t.Context(), id, w)
	if err != nil {
		t.Fatal(err)
	}
	return in, refused
}

func TestWake(t *testing.T) {
	t.Run("runtime/B06 a wake is exactly one turn, however often it comes, also after a restart", func(t *testing.T) {
		top := t
		d := start(t, setup{model: replies(scripted.Reply{Text: "noted"})})
		id := d.session(t)
		first := d.wake(t, id, over("tsk_1"))
		if report := d.wait(t, first.TurnID); report.State != protocol.TurnCompleted {
			t.Errorf("it ended as %s %+v", report.State, report.Issues)
		}
		for range 2 {
			again, refused := d.refusal(t, id, over("tsk_1"))
			if refused != protocol.WakeDuplicate || again.ID != first.ID {
				t.Errorf("again it is %s, refused as %q", again.ID, refused)
			}
			d = d.restart(top, nil)
		}
		want := []string{"notice: [task/completed tsk_1] tsk_1 is over", "agentMessage: noted"}
		if got := d.history(t, id); !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
	})
	t.Run("runtime/B06 one for a session that runs a turn waits in the queue, and comes after it", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
		id := d.session(t)
		o := d.observe(t, id)
		running := d.begin(t, id, "go").TurnID
		<-g.called
		in := d.wake(t, id, over("tsk_1"))
		if in.TurnID == running || in.State != protocol.InputQueued {
			t.Errorf("it is %s in turn %s, and %s runs", in.State, in.TurnID, running)
		}
		close(g.open)
		d.wait(t, running)
		d.wait(t, in.TurnID)
		o.over(in.TurnID)
		accepted := o.of(protocol.EventTurnAccepted)
		if e := accepted[1]; len(e.Causes) != 1 || e.Causes[0].ID != "task:tsk_1:event:3" || e.Causes[0].Origin != "tsk_1" || e.TurnID != in.TurnID {
			t.Errorf("accepted %+v", e)
		}
	})
	t.Run("runtime/B06 one for a session that is gone is refused as such", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		must[*protocol.SeqResult](t)(d.DeleteSession(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		if _, refused := d.refusal(t, id, over("tsk_1")); refused != protocol.WakeTargetGone {
			t.Errorf("refused as %q", refused)
		}
	})
}
