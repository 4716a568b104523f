package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// TestExpiredWaits checks that a wait that times out reports the state at that time.
func TestExpiredWaits(t *testing.T) {
	t.Run("runtime/T18 a wait that times out reports a turn that started during the wait as running", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGate("work")
			works := &scripted.Turn{Replies: []scripted.Reply{calls("work"), {Text: "done"}}}
			d := start(t, setup{model: scripted.New(&scripted.Script{Otherwise: works}), tools: []tool.Provider{g}})
			id := d.session(t)
			d.begin(t, id, "one")
			<-g.called
			second := d.begin(t, id, "two").TurnID
			go func() {
				time.Sleep(time.Second)
				g.open <- struct{}{}
				<-g.called
			}()
			got := must[*protocol.TurnReport](t)(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: second, TimeoutMs: 5000}))
			if got.State != protocol.TurnRunning {
				t.Errorf("it is reported as %s", got.State)
			}
			g.open <- struct{}{}
			d.wait(t, second)
		})
	})
	t.Run("runtime/B04 a wait that times out cancels nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies()})
			s := d.session(t)
			external := protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal}
			for range 40 {
				ids := []protocol.TaskID{protocol.NewTaskID(), protocol.NewTaskID()}
				for _, id := range ids {
					d.task(t, s, id, external)
				}
				go func() {
					time.Sleep(time.Second)
					at := protocol.TaskParams{SessionID: s, TaskID: ids[0]}
					_, err := d.Tasks.Complete(t.Context(), "", &protocol.TaskCompleteParams{TaskParams: at, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone}})
					if err != nil {
						t.Error(err)
					}
				}()
				r := d.waitTasks(t, &protocol.TaskWaitParams{SessionID: s, TaskIDs: ids, Rule: protocol.WaitFirst, Losers: protocol.LosersCancel, TimeoutMs: 1000})
				synctest.Wait()
				loser := d.readTask(t, s, ids[1]).Task
				if r.TimedOut == (loser.CancelRequested != nil || loser.State.Final()) {
					t.Fatalf("the time is up: %v, and the other one is %s, cancelled by %+v", r.TimedOut, loser.State, loser.CancelRequested)
				}
			}
		})
	})
	t.Run("plugin/MN-02 stopping a stopped monitor returns how it ended", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		w := d.watched(t)
		w.start(protocol.MonitorSpec{ID: "m", Command: "sleep 600"})
		p := &protocol.MonitorStopParams{Mutation: protocol.Mutation{IdempotencyKey: "stop"}, SessionID: w.id, MonitorID: "m"}
		for range 2 {
			r := must[*protocol.MonitorResult](t)(w.Monitors.Stop(t.Context(), "cli_a", p))
			if r.Monitor.State != protocol.MonitorStopped {
				t.Errorf("it is %s", r.Monitor.State)
			}
		}
	})
}
