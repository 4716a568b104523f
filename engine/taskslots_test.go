package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestTaskPlaces(t *testing.T) {
	admission := func(t *testing.T, d *daemon) protocol.TaskAdmission {
		t.Helper()
		return must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{})).Admission
	}
	t.Run("runtime/B03 64 tasks work at once, the others wait, and an idle task gives its slot back", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			lasts := work(protocol.TaskOther, protocol.RecoverOwner)
			for i := range 66 {
				begun(t, host, &plugin.TaskStart{TaskID: protocol.TaskID(fmt.Sprintf("tsk_%d", i)), Spec: lasts, Work: lasting})
			}
			d.task(t, s, "tsk_elsewhere", work(protocol.TaskOther, protocol.RecoverExternal))
			is := func(what string, working, waiting int, states string) {
				t.Helper()
				synctest.Wait()
				got := fmt.Sprint(d.readTask(t, s, "tsk_0").Task.State, d.readTask(t, s, "tsk_64").Task.State, d.readTask(t, s, "tsk_65").Task.State)
				if a := admission(t, d); a.Working != working || a.Waiting != waiting || a.Limit != 64 || got != states {
					t.Errorf("%s: %+v, %s, want %s", what, a, got, states)
				}
			}
			is("at first", 64, 2, "runningpendingpending")
			move := func(ctx context.Context, to protocol.TaskState) error {
				_, err := host.Tasks.TransitionTask(ctx, &plugin.TaskTransition{TaskParams: ofTask("tsk_0"), State: to, Waiting: "an answer"})
				return err
			}
			if err := move(t.Context(), protocol.TaskIdle); err != nil {
				t.Error(err)
			}
			is("one is idle", 64, 1, "idlerunningpending")
			soon, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := move(soon, protocol.TaskRunning); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the task resumes without a slot: %v", err)
			}
			is("it cannot go on yet", 64, 1, "idlerunningpending")
			must[protocol.Task](t)(host.Tasks.CancelTask(t.Context(), &protocol.TaskCancelParams{TaskParams: ofTask("tsk_65")}))
			is("one that waits is cancelled", 64, 0, "idlerunningcancelled")
			must[protocol.Task](t)(host.Tasks.CancelTask(t.Context(), &protocol.TaskCancelParams{TaskParams: ofTask("tsk_1")}))
			is("one that works is cancelled", 63, 0, "idlerunningcancelled")
			if err := move(t.Context(), protocol.TaskRunning); err != nil {
				t.Error(err)
			}
			is("it goes on", 64, 0, "runningrunningcancelled")
			must[protocol.Task](t)(host.Tasks.CancelTask(t.Context(), &protocol.TaskCancelParams{TaskParams: ofTask("tsk_0")}))
			is("it is cancelled", 63, 0, "cancelledrunningcancelled")
		})
	})
	t.Run("runtime/B03 an idle task can be cancelled and does not give back a slot that it does not hold", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_a", Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: lasting})
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_b", Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: lasting})
			synctest.Wait()
			must[protocol.Task](t)(host.Tasks.TransitionTask(t.Context(), &plugin.TaskTransition{TaskParams: ofTask("tsk_a"), State: protocol.TaskIdle}))
			must[protocol.Task](t)(host.Tasks.CancelTask(t.Context(), &protocol.TaskCancelParams{TaskParams: ofTask("tsk_a")}))
			if got := d.ended(t, s, "tsk_a"); got.State != protocol.TaskCancelled {
				t.Errorf("the task ended as %s", got.State)
			}
			if a := admission(t, d); a.Working != 1 {
				t.Errorf("%+v", a)
			}
		})
	})
}

func TestTaskWaits(t *testing.T) {
	t.Run("runtime/B04 a wait ends as its rule says, and a timeout changes no task", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			ids := []protocol.TaskID{"tsk_slow", "tsk_fails", "tsk_works"}
			for id, f := range map[protocol.TaskID]plugin.TaskFunc{"tsk_fails": takes(time.Minute, "no"), "tsk_works": takes(time.Hour, "")} {
				begun(t, host, &plugin.TaskStart{TaskID: id, Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: f})
			}
			d.task(t, s, "tsk_slow", work(protocol.TaskOther, protocol.RecoverExternal))
			synctest.Wait()
			before := must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{})).NextCursor
			began := time.Now()
			wait := func(rule protocol.TaskRule, losers protocol.TaskLosers, timeout time.Duration, settled string, took time.Duration) *protocol.TaskWaitResult {
				t.Helper()
				r := d.waitTasks(t, &protocol.TaskWaitParams{SessionID: s, TaskIDs: ids, Rule: rule, Losers: losers, TimeoutMs: timeout.Milliseconds()})
				if got := states(r.Settled); got != settled || time.Since(began).Round(time.Second) != took || len(r.Settled)+len(r.Live) != len(ids) {
					t.Errorf("%s: settled are %q after %s, want %q after %s", rule, got, time.Since(began), settled, took)
				}
				return r
			}
			if r := wait(protocol.WaitAll, protocol.LosersCancel, time.Second, "", time.Second); !r.TimedOut {
				t.Error("no timeout")
			}
			if now := must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{})).NextCursor; now != before {
				t.Errorf("the timeout has changed something: %s, before %s", now, before)
			}
			wait(protocol.WaitFirst, protocol.LosersKeep, 0, "tsk_fails failed", time.Minute)
			r := wait(protocol.WaitFirstSuccess, protocol.LosersCancel, 0, "tsk_fails failed, tsk_works completed", time.Hour)
			if states(r.Live) != "tsk_slow cancelRequested" {
				t.Errorf("the loser is %s", states(r.Live))
			}
			must[protocol.Task](t)(host.Tasks.CompleteTask(t.Context(), &protocol.TaskCompleteParams{TaskParams: ofTask("tsk_slow"), Outcome: protocol.TaskOutcome{Kind: protocol.TaskStopped}}))
			r = wait(protocol.WaitAll, "", 0, "tsk_fails failed, tsk_slow cancelled, tsk_works completed", time.Hour)
			if r.Settled[0].ID != "tsk_fails" || r.Settled[2].ID != "tsk_slow" {
				t.Errorf("they ended in the order %+v", r.Settled)
			}
		})
	})
	t.Run("runtime/B04 the end that decides a wait cancels the losers in its own commit; others are cancelled before the answer", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			other := d.session(t)
			spec := work(protocol.TaskOther, protocol.RecoverExternal)
			for id, session := range map[protocol.TaskID]protocol.SessionID{"tsk_a": s, "tsk_b": s, "tsk_c": s, "tsk_far": other, "tsk_none": s} {
				d.task(t, session, id, spec)
			}
			must[*protocol.TaskResult](t)(d.Tasks.Observe(t.Context(), &protocol.TaskObserveParams{TaskParams: protocol.TaskParams{SessionID: other, TaskID: "tsk_far"}, Observer: s}))
			p := &protocol.TaskWaitParams{SessionID: s, TaskIDs: []protocol.TaskID{"tsk_a", "tsk_b", "tsk_c", "tsk_far"}, Rule: protocol.WaitFirst, Losers: protocol.LosersCancel}
			got := make(chan *protocol.TaskWaitResult, 1)
			go func() { got <- must[*protocol.TaskWaitResult](t)(d.Tasks.Wait(t.Context(), "cli_w", p)) }()
			synctest.Wait()
			must[protocol.Task](t)(host.Tasks.CompleteTask(t.Context(), &protocol.TaskCompleteParams{TaskParams: ofTask("tsk_b"), Outcome: *done("all")}))
			r := <-got
			if states(r.Settled) != "tsk_b completed" || states(r.Live) != "tsk_a cancelRequested, tsk_c cancelRequested, tsk_far cancelRequested" || r.Live[0].CancelRequested.By != "cli_w" {
				t.Errorf("the wait returned settled %s and live %s", states(r.Settled), states(r.Live))
			}
			r = must[*protocol.TaskWaitResult](t)(d.Tasks.Wait(t.Context(), "cli_w", &protocol.TaskWaitParams{SessionID: s, TaskIDs: []protocol.TaskID{"tsk_b", "tsk_none"}, Rule: protocol.WaitFirst, Losers: protocol.LosersCancel}))
			if states(r.Live) != "tsk_none cancelRequested" {
				t.Errorf("a wait that was decided before it began returned %s", states(r.Live))
			}
		})
	})
	t.Run("runtime/B04 a wait with invalid parameters is rejected", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, _ plugin.Capabilities) {
			d.task(t, s, "tsk_a", work(protocol.TaskOther, protocol.RecoverExternal))
			for pointer, p := range map[string]*protocol.TaskWaitParams{
				"/taskIds": {SessionID: s}, "/rule": {TaskIDs: []protocol.TaskID{"tsk_a"}, Rule: "some"},
				"/losers": {TaskIDs: []protocol.TaskID{"tsk_a"}, Losers: "kill"}, "/timeoutMs": {TaskIDs: []protocol.TaskID{"tsk_a"}, TimeoutMs: -1},
			} {
				p.SessionID = s
				_, err := d.Tasks.Wait(t.Context(), "", p)
				if wrong, ok := errors.AsType[*param.Error](err); !ok || wrong.Pointer != pointer {
					t.Errorf("%s: %v", pointer, err)
				}
			}
			_, err := d.Tasks.Wait(t.Context(), "", &protocol.TaskWaitParams{SessionID: s, TaskIDs: []protocol.TaskID{"tsk_a", "tsk_none"}, Rule: protocol.WaitFirst})
			if !errors.Is(err, persistence.ErrNotFound) {
				t.Errorf("for an unknown task: %v", err)
			}
		})
	})
}

func TestTaskSignals(t *testing.T) {
	t.Run("runtime/B05 a task gets the signals that it declares, in order, and no others", func(t *testing.T) {
		var got notes
		hears := func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
			for {
				select {
				case s := <-run.Signals:
					got.add(s.Name + string(s.Payload))
					if s.Name == "stop" {
						return nil
					}
				case <-ctx.Done():
					return nil
				}
			}
		}
		withTasks(t, setup{}, map[string]plugin.TaskFunc{"hears": hears}, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			spec := handled("hears")
			spec.Signals = []protocol.TaskSignalType{{Name: "add", Schema: json.RawMessage(`{"type":"integer","minimum":1}`)}, {Name: "stop"}}
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_a", Spec: spec})
			send := func(name, payload string) error {
				p := &protocol.TaskSignalParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: "tsk_a"}, Name: name, Payload: json.RawMessage(payload)}
				_, err := d.Tasks.Signal(t.Context(), "cli_a", p)
				return err
			}
			for _, c := range []struct{ name, payload, pointer string }{
				{"stdin", `{"text":"x"}`, "/name"}, {"", "", "/name"}, {"add", `0`, "/payload"}, {"add", ``, "/payload"}, {"add", `"1"`, "/payload"},
			} {
				if wrong, ok := errors.AsType[*param.Error](send(c.name, c.payload)); !ok || wrong.Pointer != c.pointer {
					t.Errorf("%q %s: %v", c.name, c.payload, wrong)
				}
			}
			if err := errors.Join(send("add", "1"), send("add", "2"), send("stop", "")); err != nil {
				t.Error(err)
			}
			if task := d.ended(t, s, "tsk_a"); task.State != protocol.TaskCompleted || !slices.Equal(got.list, []string{"add1", "add2", "stop"}) {
				t.Errorf("the task ended as %s, and got %q", task.State, got.list)
			}
			if err := send("add", "3"); !errors.As(err, new(*engine.TaskEndedError)) {
				t.Errorf("a signal after its end: %v", err)
			}
		})
	})
	t.Run("runtime/B05 a signal that a task does not take before it ends fails", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			spec := work(protocol.TaskOther, protocol.RecoverOwner)
			spec.Signals = []protocol.TaskSignalType{{Name: "add"}}
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_a", Spec: spec, Work: takes(time.Minute, "")})
			_, err := host.Tasks.SignalTask(t.Context(), &protocol.TaskSignalParams{TaskParams: ofTask("tsk_a"), Name: "add"})
			if !errors.As(err, new(*engine.TaskEndedError)) {
				t.Errorf("the signal returned %v", err)
			}
		})
	})
}

func TestTaskObservers(t *testing.T) {
	t.Run("runtime/B07 the session that started a task and its observers see it, others do not, and only its owner can change it", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, owner protocol.SessionID, _ plugin.Capabilities) {
			origin, watcher, stranger := d.session(t), d.session(t), d.session(t)
			begun(t, d.host(t, origin), &plugin.TaskStart{SessionID: owner, TaskID: "tsk_a", Spec: work(protocol.TaskOther, protocol.RecoverExternal)})
			sees := func() string {
				t.Helper()
				var who []string
				for name, id := range map[string]protocol.SessionID{"owner": owner, "origin": origin, "watcher": watcher, "stranger": stranger} {
					_, err := d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: id, TaskID: "tsk_a"}})
					if err != nil && !errors.Is(err, persistence.ErrNotFound) {
						t.Errorf("%s: %v", name, err)
					}
					listed := len(must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: id})).Data) == 1
					if listed != (err == nil) {
						t.Errorf("%s lists it: %t, reads it: %v", name, listed, err)
					}
					if listed {
						who = append(who, name)
					}
				}
				slices.Sort(who)
				return strings.Join(who, " ")
			}
			if got := sees(); got != "origin owner" {
				t.Errorf("the task is visible to %s", got)
			}
			observe := func(remove bool) *protocol.TaskResult {
				t.Helper()
				return must[*protocol.TaskResult](t)(d.Tasks.Observe(t.Context(), &protocol.TaskObserveParams{TaskParams: protocol.TaskParams{SessionID: owner, TaskID: "tsk_a"}, Observer: watcher, Remove: remove}))
			}
			if first, again := observe(false), observe(false); first.Task.Ordinal != again.Task.Ordinal || sees() != "origin owner watcher" {
				t.Errorf("with an observer the task is visible to %s; ordinals %d and %d", sees(), first.Task.Ordinal, again.Task.Ordinal)
			}
			if r := d.waitTasks(t, &protocol.TaskWaitParams{SessionID: watcher, TaskIDs: []protocol.TaskID{"tsk_a"}, TimeoutMs: 1}); !r.TimedOut {
				t.Errorf("a wait of its observer: %+v", r)
			}
			if err := errOf(d.Tasks.Complete(t.Context(), "", &protocol.TaskCompleteParams{TaskParams: protocol.TaskParams{SessionID: watcher, TaskID: "tsk_a"}, Outcome: *done("x")})); !errors.Is(err, persistence.ErrNotFound) {
				t.Errorf("its observer completed it: %v", err)
			}
			observe(true)
			if got := sees(); got != "origin owner" {
				t.Errorf("without the observer the task is visible to %s", got)
			}
			if err := errOf(d.Tasks.Observe(t.Context(), &protocol.TaskObserveParams{TaskParams: protocol.TaskParams{SessionID: owner, TaskID: "tsk_a"}, Observer: "ses_none"})); !errors.Is(err, persistence.ErrNotFound) {
				t.Errorf("observed by a session that is not there: %v", err)
			}
		})
	})
}

func TestTaskView(t *testing.T) {
	t.Run("runtime/B09 tasks are listed by kind and state and cancelled together except for some, and each request takes effect once", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			for id, kind := range map[protocol.TaskID]protocol.TaskKind{"tsk_a": protocol.TaskOther, "tsk_b": protocol.TaskObserver, "tsk_c": protocol.TaskOther, "tsk_d": protocol.TaskOther} {
				begun(t, host, &plugin.TaskStart{TaskID: id, Spec: work(kind, protocol.RecoverOwner), Work: lasting})
			}
			begun(t, host, hidden("tsk_hidden", lasting))
			synctest.Wait()
			listed := func(p protocol.TaskListParams) string {
				t.Helper()
				p.SessionID = s
				return states(must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &p)).Data)
			}
			if got := listed(protocol.TaskListParams{Kind: protocol.TaskObserver}); got != "tsk_b running" {
				t.Errorf("observers: %s", got)
			}
			if got := listed(protocol.TaskListParams{Hidden: true, Kind: protocol.TaskOther}); got != "tsk_a running, tsk_c running, tsk_d running, tsk_hidden running" {
				t.Errorf("hidden ones, too: %s", got)
			}
			p := &protocol.TaskCancelAllParams{Mutation: protocol.Mutation{IdempotencyKey: "once"}, SessionID: s, Kind: protocol.TaskOther, Keep: []protocol.TaskID{"tsk_c"}, Reason: "enough"}
			first := must[*protocol.TasksResult](t)(d.Tasks.CancelAll(t.Context(), "cli_b", p))
			again := must[*protocol.TasksResult](t)(d.Tasks.CancelAll(t.Context(), "cli_b", p))
			if got := states(first.Data); got != "tsk_a cancelRequested, tsk_d cancelRequested, tsk_hidden cancelRequested" || states(again.Data) != got || !again.Duplicate {
				t.Errorf("cancelled: %s, and again %+v", got, again)
			}
			synctest.Wait()
			if got := listed(protocol.TaskListParams{Live: true, Hidden: true}); got != "tsk_b running, tsk_c running" {
				t.Errorf("live: %s", got)
			}
			other := d.session(t)
			move := &protocol.TaskTransferParams{Mutation: protocol.Mutation{IdempotencyKey: "move"}, SessionID: s, TaskIDs: []protocol.TaskID{"tsk_a", "tsk_b"}, To: other}
			moved, again := must[*protocol.TasksResult](t)(d.Tasks.Transfer(t.Context(), move)), must[*protocol.TasksResult](t)(d.Tasks.Transfer(t.Context(), move))
			if states(moved.Data) != "tsk_b running" || !again.Duplicate {
				t.Errorf("transferred: %s, and again %+v", states(moved.Data), again)
			}
			if err := errOf(d.Tasks.Transfer(t.Context(), &protocol.TaskTransferParams{SessionID: s, TaskIDs: []protocol.TaskID{"tsk_c"}, To: "ses_none"})); !errors.Is(err, persistence.ErrNotFound) {
				t.Errorf("to a session that is not there: %v", err)
			}
			if got := d.readTask(t, s, "tsk_c").Task; got.SessionID != s || got.State != protocol.TaskRunning {
				t.Errorf("the task is %s of %s then", got.State, got.SessionID)
			}
		})
	})
}
