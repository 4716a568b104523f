package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// withTasks runs a test with the task service that commands of a plugin "p" get, and with handlers that the plugin registers.
func withTasks(t *testing.T, s setup, handlers map[string]plugin.TaskFunc, f func(*testing.T, *daemon, protocol.SessionID, plugin.Capabilities)) {
	synctest.Test(t, func(t *testing.T) {
		if s.model == nil {
			s.model = replies()
		}
		s.plugins = append(s.plugins, handling("p", handlers))
		s.cwd = cmp.Or(s.cwd, t.TempDir())
		d := start(t, s)
		id := d.session(t)
		f(t, d, id, d.host(t, id))
	})
}

// handling is a plugin with task handlers and with a command that lends its services to the test.
func handling(id string, handlers map[string]plugin.TaskFunc) hooked {
	return hooked{id, func(r *plugin.Registrar) {
		for name, f := range handlers {
			r.Tasks().Handler(name, f)
		}
		r.Operations().Command(protocol.OperationInfo{Name: id + ".lend"}, func(_ context.Context, c *plugin.OperationCall) (*plugin.OperationResult, error) {
			borrowed <- c.Host
			return &plugin.OperationResult{}, nil
		})
	}}
}

// borrowed holds the services that one command lends.
var borrowed = make(chan plugin.Capabilities, 1)

func (d *daemon) host(t *testing.T, id protocol.SessionID) plugin.Capabilities {
	t.Helper()
	must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), &protocol.OperationParams{SessionID: id, Name: "p.lend", Args: json.RawMessage(`{}`)}))
	return <-borrowed
}

func work(kind protocol.TaskKind, recovery protocol.TaskRecovery) protocol.TaskSpec {
	return protocol.TaskSpec{Kind: kind, Recovery: recovery, Plugin: "p"}
}

func handled(name string) protocol.TaskSpec {
	s := work(protocol.TaskOther, protocol.RecoverRerun)
	s.Handler = name
	return s
}

// lasting is work that runs until it is stopped.
func lasting(ctx context.Context, _ *plugin.TaskRun) *protocol.TaskOutcome {
	<-ctx.Done()
	return nil
}

func done(text string) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskDone, Value: json.RawMessage(`"` + text + `"`)}
}

func begun(t *testing.T, host plugin.Capabilities, p *plugin.TaskStart) protocol.Task {
	t.Helper()
	return must[*protocol.TaskResult](t)(host.Tasks.StartTask(t.Context(), p)).Task
}

func TestPluginTasks(t *testing.T) {
	t.Run("plugin/HC-13 work of a plugin is a task with an outcome and an output", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			task := begun(t, host, &plugin.TaskStart{TaskID: "tsk_a", Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: func(_ context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
				_, _ = run.Output.Write([]byte("looked at " + string(run.Task.ID)))
				return done("all")
			}})
			got := d.ended(t, s, task.ID)
			if got.State != protocol.TaskCompleted || string(got.Outcome.Value) != `"all"` || d.output(t, s, task.ID) != "looked at tsk_a" {
				t.Errorf("the task ended as %s %+v with %q", got.State, got.Outcome, d.output(t, s, task.ID))
			}
			if got.Origin.Plugin != "p" || got.Origin.SessionID != s {
				t.Errorf("the origin of the task is %+v", got.Origin)
			}
		})
	})
	t.Run("plugin/HC-13 a panic fails the task", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			task := begun(t, host, &plugin.TaskStart{Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: func(context.Context, *plugin.TaskRun) *protocol.TaskOutcome { panic("oh") }})
			if got := d.ended(t, s, task.ID); got.State != protocol.TaskFailed || got.Outcome.Kind != protocol.TaskError {
				t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
			}
		})
	})
	t.Run("runtime/B02 after a restart a handler runs again, and work without a handler is abandoned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			runs := make(chan int, 10)
			again := func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
				if runs <- run.Task.Attempt; run.Task.Attempt == 1 {
					return lasting(ctx, run)
				}
				return done("again")
			}
			d := start(t, setup{model: replies(), plugins: plugins(handling("p", map[string]plugin.TaskFunc{"again": again}))})
			s := d.session(t)
			host := d.host(t, s)
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_handled", Spec: handled("again")})
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_bound", Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: lasting})
			synctest.Wait()
			d = d.restart(t, nil)
			if got := d.ended(t, s, "tsk_handled"); got.State != protocol.TaskCompleted || got.Attempt != 2 || <-runs != 1 || <-runs != 2 {
				t.Errorf("the handler's ended as %s %+v after %d attempts", got.State, got.Outcome, got.Attempt)
			}
			if got := d.ended(t, s, "tsk_bound"); got.State != protocol.TaskAbandoned || got.Outcome.Evidence == nil {
				t.Errorf("the other task ended as %s %+v", got.State, got.Outcome)
			}
		})
	})
	t.Run("plugin/HC-13 a spec that no worker can run is rejected, and nothing is stored", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			for field, p := range map[string]*plugin.TaskStart{
				"/spec/handler":  {Spec: handled("none")},
				"/spec/recovery": {Spec: work(protocol.TaskOther, protocol.RecoverRerun), Work: lasting},
				"/spec/kind":     {Spec: work(protocol.TaskOther, protocol.RecoverOwner)},
			} {
				_, err := host.Tasks.StartTask(t.Context(), p)
				if wrong, ok := errors.AsType[*param.Error](err); !ok || wrong.Pointer != field {
					t.Errorf("%s: %v", field, err)
				}
			}
			if _, err := host.Tasks.StartTask(t.Context(), &plugin.TaskStart{SessionID: "ses_none", Spec: work(protocol.TaskOther, protocol.RecoverExternal)}); !errors.Is(err, persistence.ErrNotFound) {
				t.Errorf("a session that is not there: %v", err)
			}
			if all := must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: s})).Data; len(all) != 0 {
				t.Errorf("tasks: %+v", all)
			}
		})
	})
}
