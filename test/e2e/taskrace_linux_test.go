package e2e

import (
	"fmt"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// TestKilledOnceARaceIsDecided kills the daemon as soon as the end of the first task is visible in the
// database.
func TestKilledOnceARaceIsDecided(t *testing.T) {
	t.Run("runtime/B04 waiting for the first task cancels the others when it ends, also if the daemon dies then", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "allow")
		d := w.serve()
		p := w.dial("the-client")
		id := p.session(w.home)
		var ids []protocol.TaskID
		for n := range 250 {
			ids = append(ids, protocol.TaskID(fmt.Sprintf("tsk_%d", n)))
			ask[protocol.TaskResult](p, "task/start", protocol.TaskStartParams{SessionID: id, TaskID: ids[n], Spec: protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal}})
		}
		answer := make(chan error, 2)
		go func() {
			_, err := try[protocol.TaskWaitResult](p, "task/wait", protocol.TaskWaitParams{SessionID: id, TaskIDs: ids, Rule: protocol.WaitFirst, Losers: protocol.LosersCancel})
			answer <- err
		}()
		time.Sleep(500 * time.Millisecond) // gives the wait time to start
		db := w.database("ro")
		go func() {
			params := protocol.TaskCompleteParams{TaskParams: protocol.TaskParams{SessionID: id, TaskID: ids[0]}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone}}
			_, err := try[protocol.TaskResult](p, "task/complete", params)
			answer <- err
		}()
		for over := []string{}; len(over) == 0; {
			var err error
			if over, err = column[string](db, "SELECT task_id FROM tasks WHERE ended"); err != nil {
				t.Fatal(err)
			}
		}
		d.kill()
		<-answer
		<-answer
		w.serve()
		asked := 0
		for _, other := range ask[protocol.TaskListResult](w.dial("another"), "task/list", protocol.TaskListParams{SessionID: id, Live: true, Limit: 1000}).Data {
			if other.State == protocol.TaskCancelRequested {
				asked++
			}
		}
		if asked != len(ids)-1 {
			t.Errorf("%d of %d are cancelled", asked, len(ids)-1)
		}
	})
}
