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
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func states(all []protocol.Task) string {
	var list []string
	for _, t := range all {
		list = append(list, fmt.Sprintf("%s %s", t.ID, t.State))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func ofTask(id protocol.TaskID) protocol.TaskParams { return protocol.TaskParams{TaskID: id} }

// hidden is work that clients do not see.
func hidden(id protocol.TaskID, f plugin.TaskFunc) *plugin.TaskStart {
	spec := work(protocol.TaskOther, protocol.RecoverOwner)
	spec.Hidden = true
	return &plugin.TaskStart{TaskID: id, Spec: spec, Work: f}
}

// takes is work that waits and then fails with a message, or completes if the message is empty.
func takes(d time.Duration, failure string) plugin.TaskFunc {
	return func(ctx context.Context, _ *plugin.TaskRun) *protocol.TaskOutcome {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return nil
		}
		if failure == "" {
			return nil
		}
		return &protocol.TaskOutcome{Kind: protocol.TaskError, Message: failure}
	}
}

func TestHiddenTasks(t *testing.T) {
	t.Run("plugin/HC-12 waiting for hidden tasks includes those that start during the wait, and returns the first failure once", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			begun(t, host, hidden("tsk_outer", func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
				time.Sleep(time.Second)
				begun(t, run.Host, hidden("tsk_inner", takes(time.Minute, "second")))
				return &protocol.TaskOutcome{Kind: protocol.TaskError, Message: "first"}
			}))
			began := time.Now()
			failed, ok := errors.AsType[*plugin.TaskFailedError](host.Tasks.AwaitHidden(t.Context(), ""))
			if took := time.Since(began); !ok || failed.Task.ID != "tsk_outer" || failed.Task.Outcome.Message != "first" || took < time.Minute {
				t.Errorf("after %s: %+v", took, failed)
			}
			if err := host.Tasks.AwaitHidden(t.Context(), ""); err != nil {
				t.Errorf("asked again: %v", err)
			}
			r := must[*protocol.TaskListResult](t)(host.Tasks.ListTasks(t.Context(), &protocol.TaskListParams{}))
			if len(r.Data) != 0 {
				t.Errorf("hidden tasks are listed: %s", states(r.Data))
			}
			row := must[persistence.Session](t)(d.store.Session(t.Context(), s))
			for _, e := range must[[]persistence.StoredEvent](t)(d.store.Events(t.Context(), row.Key, 0, 500)) {
				if strings.HasPrefix(string(e.Type), "task/") {
					t.Errorf("subscribers received an event of a hidden task: %s", e.Type)
				}
			}
		})
	})
	t.Run("plugin/HC-12 a hidden task that waits for the others does not wait for itself, and a cancelled wait ends no task", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			begun(t, host, hidden("tsk_other", takes(time.Minute, "")))
			begun(t, host, hidden("tsk_waits", func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
				if err := run.Host.Tasks.AwaitHidden(ctx, ""); err != nil {
					return &protocol.TaskOutcome{Kind: protocol.TaskError, Message: err.Error()}
				}
				return done("alone")
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := host.Tasks.AwaitHidden(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a wait that is given up: %v", err)
			}
			if got := d.readTask(t, s, "tsk_other").Task; got.State != protocol.TaskRunning {
				t.Errorf("the task is %s then", got.State)
			}
			if got := d.ended(t, s, "tsk_waits"); got.State != protocol.TaskCompleted {
				t.Errorf("the task ended as %+v", got.Outcome)
			}
		})
	})
}

func TestTaskStates(t *testing.T) {
	t.Run("plugin/HC-13 an external task runs elsewhere, and illegal transitions are ignored", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_x", Spec: work(protocol.TaskObserver, protocol.RecoverExternal), Ref: "job 7"})
			move := func(to protocol.TaskState, want string) {
				t.Helper()
				got := must[protocol.Task](t)(host.Tasks.TransitionTask(t.Context(), &plugin.TaskTransition{TaskParams: ofTask("tsk_x"), State: to, Waiting: "a reply"}))
				if is := string(got.State) + " " + got.Waiting; strings.TrimSpace(is) != want {
					t.Errorf("to %s: it is %q, want %q", to, is, want)
				}
			}
			move(protocol.TaskRunning, "running")
			move(protocol.TaskIdle, "idle a reply")
			move(protocol.TaskIdle, "idle a reply")
			move(protocol.TaskRunning, "running")
			if _, err := host.Tasks.TransitionTask(t.Context(), &plugin.TaskTransition{TaskParams: ofTask("tsk_x"), State: protocol.TaskCompleted}); !errors.As(err, new(*param.Error)) {
				t.Errorf("a transition to its end: %v", err)
			}
			end := func(kind protocol.TaskEnd) protocol.Task {
				t.Helper()
				return must[protocol.Task](t)(host.Tasks.CompleteTask(t.Context(), &protocol.TaskCompleteParams{TaskParams: ofTask("tsk_x"), Outcome: protocol.TaskOutcome{Kind: kind}}))
			}
			if _, err := host.Tasks.CompleteTask(t.Context(), &protocol.TaskCompleteParams{TaskParams: ofTask("tsk_x"), Outcome: protocol.TaskOutcome{Kind: "running"}}); !errors.As(err, new(*param.Error)) {
				t.Errorf("an end that is none: %v", err)
			}
			if first, again := end(protocol.TaskDone), end(protocol.TaskError); first.State != protocol.TaskCompleted || again.State != protocol.TaskCompleted || again.Ordinal != first.Ordinal {
				t.Errorf("the task ended as %s, and again as %s", first.State, again.State)
			}
			move(protocol.TaskIdle, "completed")
			if k := eventKinds(d.readTask(t, s, "tsk_x").Events); k != "created externalRef waiting resumed ended" {
				t.Errorf("events: %s", k)
			}
		})
	})
	t.Run("plugin/HC-13 the kind of a task decides how it is cancelled", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_abort", Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: lasting})
			polite := work(protocol.TaskOther, protocol.RecoverOwner)
			polite.Cancel = protocol.CancelCooperative
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_polite", Spec: polite, Work: func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
				<-run.Asked
				time.Sleep(time.Hour)
				if ctx.Err() != nil {
					return &protocol.TaskOutcome{Kind: protocol.TaskError, Message: "it was not let end"}
				}
				return nil
			}})
			elsewhere := work(protocol.TaskOther, protocol.RecoverExternal)
			elsewhere.Cancel = protocol.CancelElsewhere
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_elsewhere", Spec: elsewhere})
			synctest.Wait()
			all := must[[]protocol.Task](t)(host.Tasks.CancelTasks(t.Context(), &protocol.TaskCancelAllParams{Reason: "enough"}))
			if got := states(all); got != "tsk_abort cancelRequested, tsk_elsewhere cancelRequested, tsk_polite cancelRequested" {
				t.Errorf("asked to end: %s", got)
			}
			synctest.Wait()
			time.Sleep(time.Minute)
			all = must[*protocol.TaskListResult](t)(host.Tasks.ListTasks(t.Context(), &protocol.TaskListParams{})).Data
			if got := states(all); got != "tsk_abort cancelled, tsk_elsewhere cancelRequested, tsk_polite cancelRequested" {
				t.Errorf("a minute later: %s", got)
			}
			if got := d.ended(t, s, "tsk_polite"); got.State != protocol.TaskCancelled || got.Outcome.By != "internal:plugin" || got.Outcome.Message != "enough" {
				t.Errorf("the cooperative task ended as %s %+v", got.State, got.Outcome)
			}
			if all := must[[]protocol.Task](t)(host.Tasks.CancelTasks(t.Context(), &protocol.TaskCancelAllParams{})); states(all) != "tsk_elsewhere cancelRequested" {
				t.Errorf("all are cancelled once more: %s", states(all))
			}
		})
	})
	t.Run("plugin/HC-13 work that does not return is abandoned", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			free := make(chan struct{})
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_deaf", Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: func(context.Context, *plugin.TaskRun) *protocol.TaskOutcome {
				<-free
				return nil
			}})
			synctest.Wait()
			must[protocol.Task](t)(host.Tasks.CancelTask(t.Context(), &protocol.TaskCancelParams{TaskParams: ofTask("tsk_deaf")}))
			if got := d.ended(t, s, "tsk_deaf"); got.State != protocol.TaskAbandoned || got.Outcome.Evidence == nil {
				t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
			}
			close(free)
		})
	})
}

func TestHandles(t *testing.T) {
	open := func(t *testing.T, host plugin.Capabilities, ids ...protocol.TaskID) {
		for _, id := range ids {
			begun(t, host, &plugin.TaskStart{TaskID: id, Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: lasting})
		}
	}
	t.Run("plugin/HC-14 plugin/HC-16 handles must be live tasks that the session sees; the error names the first that is not", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			open(t, host, "tsk_a", "tsk_b")
			begun(t, host, hidden("tsk_hidden", lasting))
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_over", Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: takes(0, "")})
			d.ended(t, s, "tsk_over")
			other := d.session(t)
			if err := host.Tasks.ValidateVisible(t.Context(), "", []protocol.TaskID{"tsk_a", "tsk_b"}); err != nil {
				t.Errorf("its own: %v", err)
			}
			for _, c := range []struct {
				session protocol.SessionID
				id      protocol.TaskID
			}{{"", "tsk_none"}, {"", "tsk_over"}, {"", "tsk_hidden"}, {other, "tsk_a"}} {
				err := host.Tasks.ValidateVisible(t.Context(), c.session, []protocol.TaskID{"tsk_a", c.id, "tsk_none"})
				if handle, ok := errors.AsType[*plugin.HandleError](err); !ok || handle.TaskID != c.id {
					t.Errorf("%s in %q: %v", c.id, c.session, err)
				}
			}
			for name, err := range map[string]error{
				"cancelled": errOf(host.Tasks.CancelTask(t.Context(), &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: other, TaskID: "tsk_a"}})),
				"signalled": errOf(host.Tasks.SignalTask(t.Context(), &protocol.TaskSignalParams{TaskParams: protocol.TaskParams{SessionID: other, TaskID: "tsk_a"}, Name: "go"})),
				"awaited":   errOf(host.Tasks.AwaitTasks(t.Context(), &protocol.TaskWaitParams{SessionID: other, TaskIDs: []protocol.TaskID{"tsk_a"}})),
			} {
				if !errors.Is(err, persistence.ErrNotFound) {
					t.Errorf("%s by a session that cannot see the task: %v", name, err)
				}
			}
			if got := d.readTask(t, s, "tsk_a").Task; got.CancelRequested != nil || got.State != protocol.TaskRunning {
				t.Errorf("the task is %s", got.State)
			}
		})
	})
	t.Run("plugin/HC-14 either all handles are transferred or none, and handles that are not kept are cancelled", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			open(t, host, "tsk_a", "tsk_b", "tsk_c")
			begun(t, host, hidden("tsk_hidden", lasting))
			other := d.session(t)
			d.task(t, other, "tsk_b", work(protocol.TaskOther, protocol.RecoverExternal))
			give := func(ids ...protocol.TaskID) ([]protocol.Task, error) {
				return host.Tasks.TransferTasks(t.Context(), &protocol.TaskTransferParams{TaskIDs: ids, To: other})
			}
			if _, err := give("tsk_a", "tsk_b"); err == nil {
				t.Error("a task whose id is taken was transferred")
			}
			if got := d.readTask(t, s, "tsk_a").Task; got.SessionID != s {
				t.Errorf("one task was transferred to %s although the transfer failed", got.SessionID)
			}
			if moved := must[[]protocol.Task](t)(give("tsk_a", "tsk_none")); states(moved) != "tsk_a running" {
				t.Errorf("transferred: %s", states(moved))
			}
			ended := must[[]protocol.Task](t)(host.Tasks.CancelTasks(t.Context(), &protocol.TaskCancelAllParams{Keep: []protocol.TaskID{"tsk_b"}}))
			if states(ended) != "tsk_c cancelRequested" {
				t.Errorf("cancelled: %s", states(ended))
			}
			synctest.Wait()
			for id, want := range map[protocol.TaskID]protocol.TaskState{"tsk_a": "running", "tsk_b": "running", "tsk_c": "cancelled", "tsk_hidden": "running"} {
				if got := d.readTask(t, s, id).Task; got.State != want {
					t.Errorf("%s is %s, want %s", id, got.State, want)
				}
			}
		})
	})
}

func TestFollowTasks(t *testing.T) {
	t.Run("plugin/HC-15 runtime/B08 following tasks of a session, of a kind or live tasks yields exactly those", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			other := d.session(t)
			ctx, cancel := context.WithCancel(t.Context())
			told := map[string]*notes{}
			for name, q := range map[string]*protocol.TaskListParams{
				"all": {}, "other": {SessionID: other}, "observers": {Kind: protocol.TaskObserver}, "live": {Live: true},
			} {
				n := &notes{}
				told[name] = n
				go func() {
					for task, err := range host.Tasks.FollowTasks(ctx, q) {
						if err == nil {
							n.add(fmt.Sprintf("%s %s", task.ID, task.State))
						}
					}
				}()
			}
			synctest.Wait()
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_one", Spec: work(protocol.TaskOther, protocol.RecoverExternal)})
			synctest.Wait()
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_two", Spec: work(protocol.TaskObserver, protocol.RecoverExternal)})
			d.task(t, other, "tsk_far", work(protocol.TaskOther, protocol.RecoverExternal))
			synctest.Wait()
			must[protocol.Task](t)(host.Tasks.CompleteTask(t.Context(), &protocol.TaskCompleteParams{TaskParams: ofTask("tsk_one"), Outcome: *done("all")}))
			synctest.Wait()
			cancel()
			synctest.Wait()
			for name, want := range map[string]string{
				"all": "tsk_one running, tsk_two running, tsk_one completed", "other": "tsk_far running",
				"observers": "tsk_two running", "live": "tsk_one running, tsk_two running",
			} {
				if got := strings.Join(told[name].list, ", "); got != want {
					t.Errorf("%s: told %q, want %q", name, got, want)
				}
			}
		})
	})
	t.Run("runtime/B08 a cursor continues where it was, also after a restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies()})
			s := d.session(t)
			ask := func(cursor string, limit int) *protocol.TaskListResult {
				t.Helper()
				return must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: s, Cursor: cursor, Limit: limit}))
			}
			spec := protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal}
			for _, id := range []protocol.TaskID{"tsk_a", "tsk_b", "tsk_c"} {
				d.task(t, s, id, spec)
			}
			page := ask("", 2)
			if states(page.Data) != "tsk_a running, tsk_b running" || !page.More {
				t.Errorf("first page: %s, more: %t", states(page.Data), page.More)
			}
			must[*protocol.TaskResult](t)(d.Tasks.Complete(t.Context(), "cli_a", &protocol.TaskCompleteParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: "tsk_a"}, Outcome: *done("all")}))
			d = d.restart(t, nil)
			if page = ask(page.NextCursor, 0); states(page.Data) != "tsk_a completed, tsk_c running" || page.More {
				t.Errorf("changed tasks: %s, more: %t", states(page.Data), page.More)
			}
			if again := ask(page.NextCursor, 0); len(again.Data) != 0 || again.NextCursor != page.NextCursor {
				t.Errorf("unchanged page: %s, cursor %s and %s", states(again.Data), page.NextCursor, again.NextCursor)
			}
			if _, err := d.Tasks.List(t.Context(), &protocol.TaskListParams{Cursor: "-1"}); !errors.As(err, new(*param.Error)) {
				t.Errorf("a cursor that is none: %v", err)
			}
		})
	})
}

func TestTellTask(t *testing.T) {
	t.Run("plugin/HC-16 runtime/B06 a task can emit the events that its spec declares, and each wakes its session once", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			spec := work(protocol.TaskObserver, protocol.RecoverExternal)
			spec.Events = []protocol.TaskEventType{{Name: "seen", Schema: json.RawMessage(`{"type":"object","required":["what"]}`), Wake: &protocol.TaskWake{Text: "look"}}}
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_x", Spec: spec})
			tell := func(name, payload string) error {
				return errOf(host.Tasks.TellTask(t.Context(), &plugin.TaskTold{TaskParams: ofTask("tsk_x"), Name: name, Payload: json.RawMessage(payload)}))
			}
			for pointer, err := range map[string]error{"/name": tell("heard", `{}`), "/payload": tell("seen", `{}`)} {
				if wrong, ok := errors.AsType[*param.Error](err); !ok || wrong.Pointer != pointer {
					t.Errorf("%s: %v", pointer, err)
				}
			}
			if err := tell("seen", `{"what":"smoke"}`); err != nil {
				t.Error(err)
			}
			must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: s}))
			if turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: s})).Data; len(turns) != 1 {
				t.Errorf("%d turns", len(turns))
			}
			if k := eventKinds(d.readTask(t, s, "tsk_x").Events); k != "created event" {
				t.Errorf("events: %s", k)
			}
			must[protocol.Task](t)(host.Tasks.CompleteTask(t.Context(), &protocol.TaskCompleteParams{TaskParams: ofTask("tsk_x"), Outcome: *done("all")}))
			if err := tell("seen", `{"what":"fire"}`); !errors.As(err, new(*engine.TaskEndedError)) {
				t.Errorf("after its end: %v", err)
			}
		})
	})
}

func TestTellTaskOnce(t *testing.T) {
	t.Run("plugin/HC-16 runtime/B06 an event with a key is stored once, even if the next attempt emits it again", func(t *testing.T) {
		tells := func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
			told := func(key, payload string) error {
				return errOf(run.Host.Tasks.TellTask(ctx, &plugin.TaskTold{TaskParams: ofTask(run.Task.ID), Name: "seen", Key: key, Payload: json.RawMessage(payload)}))
			}
			if err := errors.Join(told("first", `{"a": "<b>"}`), told("second", `1`)); err != nil {
				t.Error(err)
			}
			if run.Task.Attempt == 1 {
				<-ctx.Done()
				return nil
			}
			if err := told("first", `{"a":"c"}`); !errors.As(err, new(*engine.TaskEventConflictError)) {
				t.Errorf("the same key with something else: %v", err)
			}
			return done("all")
		}
		withTasks(t, setup{}, map[string]plugin.TaskFunc{"tells": tells}, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			spec := handled("tells")
			spec.Events = []protocol.TaskEventType{{Name: "seen", Wake: &protocol.TaskWake{}}}
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_x", Spec: spec})
			synctest.Wait()
			d = d.restart(t, nil)
			must[*protocol.TaskWaitResult](t)(d.Tasks.Wait(t.Context(), "", &protocol.TaskWaitParams{SessionID: s, TaskIDs: []protocol.TaskID{"tsk_x"}}))
			must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: s}))
			r := d.readTask(t, s, "tsk_x")
			if k := eventKinds(r.Events); k != "created started event event started ended" || r.Task.State != protocol.TaskCompleted {
				t.Errorf("events %s, and it is %s", k, r.Task.State)
			}
			if turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: s})).Data; len(turns) != 2 {
				t.Errorf("%d turns, want one for each event", len(turns))
			}
			after := func(key string) error {
				return errOf(d.host(t, s).Tasks.TellTask(t.Context(), &plugin.TaskTold{TaskParams: ofTask("tsk_x"), Name: "seen", Key: key, Payload: json.RawMessage(`1`)}))
			}
			if err := after("second"); err != nil {
				t.Errorf("told again after the end: %v", err)
			}
			if err := after("third"); !errors.As(err, new(*engine.TaskEndedError)) {
				t.Errorf("something new after the end: %v", err)
			}
		})
	})
}

func TestWakesOfATaskThatMoves(t *testing.T) {
	t.Run("runtime/B06 runtime/B09 an event of a task wakes the session that owns the task at that time, and no other", func(t *testing.T) {
		withTasks(t, setup{model: replies(scripted.Reply{Text: "ok"})}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			other := d.session(t)
			spec := work(protocol.TaskObserver, protocol.RecoverExternal)
			spec.Ended, spec.Events = &protocol.TaskWake{Text: "over"}, []protocol.TaskEventType{{Name: "seen", Wake: &protocol.TaskWake{Text: "seen"}}}
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_x", Spec: spec})
			tell := func(key string) {
				must[protocol.Task](t)(host.Tasks.TellTask(t.Context(), &plugin.TaskTold{TaskParams: ofTask("tsk_x"), Name: "seen", Key: key}))
			}
			tell("a")
			must[*protocol.TasksResult](t)(d.Tasks.Transfer(t.Context(), &protocol.TaskTransferParams{SessionID: s, To: other, TaskIDs: []protocol.TaskID{"tsk_x"}}))
			tell("a")
			tell("b")
			must[protocol.Task](t)(host.Tasks.CompleteTask(t.Context(), &protocol.TaskCompleteParams{TaskParams: ofTask("tsk_x"), Outcome: *done("all")}))
			for id, want := range map[protocol.SessionID][]string{
				s:     {"notice: [task/seen tsk_x] seen", "agentMessage: ok"},
				other: {"notice: [task/seen tsk_x] seen", "agentMessage: ok", "notice: [task/completed tsk_x] over", "agentMessage: ok"},
			} {
				must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: id}))
				if got := d.history(t, id); !slices.Equal(got, want) {
					t.Errorf("history %q, want %q", got, want)
				}
			}
		})
	})
}
