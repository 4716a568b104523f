package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// operator is a plugin whose operations are functions of the test.
func operator(register func(plugin.OperationGroup)) plugin.Factory {
	return &keeper{id: "op", register: func(_ *kept, r *plugin.Registrar) { register(r.Operations()) }}
}

func named(name string, rule protocol.SessionRule) protocol.OperationInfo {
	return protocol.OperationInfo{Name: name, Session: rule}
}

// gives is a command with a fixed result.
func gives(result plugin.OperationResult) plugin.CommandFunc {
	return func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) { return &result, nil }
}

// pausingTask is a task that signals its start and waits for the test.
type pausingTask struct{ began, end chan *plugin.OperationCall }

func newPausingTask() pausingTask {
	return pausingTask{make(chan *plugin.OperationCall, 10), make(chan *plugin.OperationCall)}
}

func (p pausingTask) run(ctx context.Context, call *plugin.OperationCall) (*plugin.OperationResult, error) {
	p.began <- call
	select {
	case <-p.end:
	case <-ctx.Done():
	}
	return &plugin.OperationResult{Output: json.RawMessage(`"done"`), Events: []protocol.PluginNode{{Type: "e", Body: json.RawMessage(`1`)}}}, nil
}

func (d *daemon) operation(id protocol.SessionID, name string) *protocol.OperationParams {
	return &protocol.OperationParams{SessionID: id, Name: name}
}

// later is a call in progress.
func later[T any](f func() (T, error)) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := f()
		done <- err
	}()
	return done
}

func TestOperationsApply(t *testing.T) {
	whole := t
	event := protocol.PluginNode{Type: "noted", Body: json.RawMessage(`{"n":1}`)}
	d := start(t, with(operator(func(g plugin.OperationGroup) {
		g.Command(named("note", ""), gives(plugin.OperationResult{
			Output: json.RawMessage(`"fine"`), Events: []protocol.PluginNode{event},
			Queue: []plugin.QueueTurn{{Input: text("from the plugin"), SourceKey: "once"}},
		}))
		g.Command(named("other", ""), gives(plugin.OperationResult{
			Events: []protocol.PluginNode{event}, Queue: []plugin.QueueTurn{{Input: text("something else"), SourceKey: "once"}},
		}))
		g.Command(named("fails", ""), func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
			return nil, errors.New("out of paper")
		})
		g.Command(named("empty", ""), gives(plugin.OperationResult{
			Events: []protocol.PluginNode{event}, Queue: []plugin.QueueTurn{{Input: []protocol.InputPart{{Type: "smell"}}}},
		}))
	})))
	t.Run("plugin/OP-05 plugin/OP-06 events and turns are stored in one commit with their plugin, and each source once", func(t *testing.T) {
		id := d.session(t)
		call := d.operation(id, "note")
		call.IdempotencyKey = string(id)
		first := must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), call))
		if len(first.Inputs) != 1 || first.Inputs[0].Source != "op:once" || string(first.Output) != `"fine"` || first.Plugin != "op" {
			t.Fatalf("receipt %+v", first)
		}
		d.wait(t, first.Inputs[0].TurnID)
		if again := must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), call)); !again.Duplicate || again.Inputs[0].ID != first.Inputs[0].ID {
			t.Errorf("the same request again gives %+v", again)
		}
		second := must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), d.operation(id, "note")))
		if second.Duplicate || len(second.Inputs) != 1 || second.Inputs[0].ID != first.Inputs[0].ID {
			t.Errorf("another request with the same source gives %+v", second)
		}
		d = d.restart(whole, nil)
		want := []protocol.PluginNode{{Plugin: "op", Type: "noted", Body: event.Body}, {Plugin: "op", Type: "noted", Body: event.Body}}
		if got := pluginNodes(d.graph(t, id).Data); !slices.EqualFunc(got, want, samePluginNode) {
			t.Errorf("in history there are %+v", got)
		}
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"from the plugin", "ok"}) {
			t.Errorf("in history there is %q", got)
		}
	})
	t.Run("runtime/P07 a source that is repeated with another input is rejected and changes nothing", func(t *testing.T) {
		id := d.session(t)
		must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), d.operation(id, "note")))
		_, err := d.Operations.Command(t.Context(), d.operation(id, "other"))
		if e, ok := errors.AsType[*plugin.OperationError](err); !ok || e.Code != plugin.OperationFailed {
			t.Errorf("it is answered %v", err)
		}
		must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: id}))
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"from the plugin", "ok"}) || len(pluginNodes(d.graph(t, id).Data)) != 1 {
			t.Errorf("in history there is %q", got)
		}
	})
	t.Run("plugin/OP-07 an operation that fails or has an invalid result changes nothing", func(t *testing.T) {
		id := d.session(t)
		for _, name := range []string{"fails", "empty"} {
			_, err := d.Operations.Command(t.Context(), d.operation(id, name))
			if e, ok := errors.AsType[*plugin.OperationError](err); !ok || e.Code != plugin.OperationFailed || e.Name != name {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := pluginNodes(d.graph(t, id).Data); len(got) != 0 {
			t.Errorf("in history there are %+v", got)
		}
	})
}

func pluginNodes(nodes []protocol.Node) (all []protocol.PluginNode) {
	for _, n := range nodes {
		if n.Plugin != nil {
			all = append(all, *n.Plugin)
		}
	}
	return all
}

func samePluginNode(a, b protocol.PluginNode) bool {
	return a.Plugin == b.Plugin && a.Type == b.Type && string(a.Body) == string(b.Body)
}

func TestOperationsTakeTurns(t *testing.T) {
	t.Run("plugin/OP-04 a query runs during a turn, and a command waits for the turn to end", func(t *testing.T) {
		g := newGate("work")
		s := with(&keeper{})
		s.model, s.tools = replies(calls("work")), []tool.Provider{g}
		d := start(t, s)
		id := d.session(t)
		d.holds(t, id, "before", "")
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		command := d.operation(id, "keeper.keep")
		command.Args = json.RawMessage(`{"Text":"after"}`)
		done := later(func() (*protocol.OperationReceipt, error) { return d.Operations.Command(t.Context(), command) })
		if got := d.held(t, id, "keeper").Text; got != "before" {
			t.Errorf("beside the turn the plugin keeps %q", got)
		}
		select {
		case err := <-done:
			t.Fatalf("the command did not wait: %v", err)
		default:
		}
		close(g.open)
		d.wait(t, turn)
		if err := <-done; err != nil || d.held(t, id, "keeper").Text != "after" {
			t.Errorf("after the turn: %v", err)
		}
	})
	t.Run("plugin/OP-04 no turn starts and no snapshot is restored while a task runs", turnAfterTask)
	t.Run("plugin/OP-09 a cancelled task has the result that it returns and a scope of its own", cancelledTask)
	t.Run("plugin/OP-09 a waiting command can be cancelled", givenUpCommand)
	t.Run("plugin/OP-09 a task that the daemon stops keeps its result if it returns in time", func(t *testing.T) {
		p := newPausingTask()
		d := start(t, with(operator(func(g plugin.OperationGroup) { g.Task(named("slow", ""), p.run) })))
		id := d.session(t)
		done := later(func() (*protocol.OperationReceipt, error) {
			return d.Operations.Task(context.WithoutCancel(t.Context()), d.operation(id, "slow"))
		})
		<-p.began
		d.stop()
		err := <-done
		d = d.restart(t, nil)
		if got := len(pluginNodes(d.graph(t, id).Data)); (got == 1) != (err == nil) {
			t.Errorf("the caller got %v, and history has %d events", err, got)
		}
	})
}

func turnAfterTask(t *testing.T) {
	p := newPausingTask()
	d := start(t, with(operator(func(g plugin.OperationGroup) { g.Task(named("slow", ""), p.run) })))
	id := d.session(t)
	done := later(func() (*protocol.OperationReceipt, error) {
		return d.Operations.Task(t.Context(), d.operation(id, "slow"))
	})
	<-p.began
	started := d.begin(t, id, "go")
	if started.State != protocol.TurnQueued {
		t.Errorf("beside a task a turn is %s", started.State)
	}
	name := &protocol.SnapshotMutationParams{SessionID: id, Name: "s"}
	must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), name))
	if _, err := d.Snapshots.Restore(t.Context(), name); err == nil {
		t.Error("restored beside a task")
	}
	close(p.end)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	d.wait(t, started.TurnID)
	nodes := d.graph(t, id).Data
	noted := slices.IndexFunc(nodes, func(n protocol.Node) bool { return n.Plugin != nil })
	if spoken := slices.IndexFunc(nodes, func(n protocol.Node) bool { return n.Message != nil }); noted < 0 || noted > spoken {
		t.Errorf("the task's event is at %d, the turn at %d", noted, spoken)
	}
}

func cancelledTask(t *testing.T) {
	p := newPausingTask()
	d := start(t, with(operator(func(g plugin.OperationGroup) { g.Task(named("slow", ""), p.run) })))
	id := d.session(t)
	scopes := map[string]bool{}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		done := later(func() (*protocol.OperationReceipt, error) { return d.Operations.Task(ctx, d.operation(id, "slow")) })
		scopes[(<-p.began).Scope] = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if len(scopes) != 2 || scopes[""] {
		t.Errorf("scopes %v", scopes)
	}
	if got := pluginNodes(d.graph(t, id).Data); len(got) != 2 {
		t.Errorf("late outcomes came to %+v", got)
	}
}

func givenUpCommand(t *testing.T) {
	g := newGate("work")
	s := with(&keeper{})
	s.model, s.tools = replies(calls("work")), []tool.Provider{g}
	d := start(t, s)
	id := d.session(t)
	turn := d.begin(t, id, "go").TurnID
	<-g.called
	ctx, cancel := context.WithCancel(t.Context())
	done := later(func() (*protocol.OperationReceipt, error) {
		return d.Operations.Command(ctx, d.operation(id, "keeper.keep"))
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	close(g.open)
	d.wait(t, turn)
	d.turn(t, id, "and on")
}

// clinger is a plugin whose close blocks until the test releases it.
type clinger struct{ *atomic.Bool }

func (clinger) ID() string { return "clinger" }

func (c clinger) Build(plugin.BuildContext) (plugin.Plugin, error) { return c, nil }

func (clinger) Register(*plugin.Registrar) error { return nil }

func (c clinger) Close() error {
	if c.Load() {
		return errors.New("it clings to what it has")
	}
	return nil
}

func TestOperationsWithoutSession(t *testing.T) {
	clinging := &atomic.Bool{}
	d := start(t, with(clinger{clinging}, operator(func(g plugin.OperationGroup) {
		g.Query(named("about", protocol.SessionForbidden), func(_ context.Context, call *plugin.OperationCall) (json.RawMessage, error) {
			return json.Marshal("session " + string(call.SessionID))
		})
		g.Command(named("reset", protocol.SessionForbidden), gives(plugin.OperationResult{Output: json.RawMessage(`true`)}))
		g.Command(named("shout", protocol.SessionOptional), gives(plugin.OperationResult{Events: []protocol.PluginNode{{Type: "e", Body: json.RawMessage(`1`)}}}))
	})))
	id := d.session(t)
	t.Run("plugin/OP-11 an operation without a session is listed and called without one", func(t *testing.T) {
		res := must[*protocol.OperationQueryResult](t)(d.Operations.Query(t.Context(), &protocol.OperationQueryParams{Name: "about"}))
		if string(res.Output) != `"session "` || res.Plugin != "op" {
			t.Errorf("%+v", res)
		}
		reset := d.operation("", "reset")
		reset.IdempotencyKey = "r"
		for _, duplicate := range []bool{false, true} {
			if r := must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), reset)); string(r.Output) != "true" || r.Duplicate != duplicate {
				t.Errorf("%+v", r)
			}
		}
		all := must[*protocol.OperationListResult](t)(d.Operations.List(t.Context(), &protocol.OperationListParams{}))
		if len(all.Data) != 5 || all.Data[0].Name != "about" || all.Data[0].Plugin != "op" {
			t.Errorf("%+v", all.Data)
		}
	})
	t.Run("plugin/OP-11 an operation without a session succeeds even if its plugins do not close", func(t *testing.T) {
		clinging.Store(true)
		defer clinging.Store(false)
		reset := d.operation("", "reset")
		reset.IdempotencyKey = "clinging"
		if r := must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), reset)); string(r.Output) != "true" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("plugin/OP-03 plugin/OP-10 an invalid call is rejected with a code", func(t *testing.T) {
		for _, c := range []struct {
			params *protocol.OperationParams
			code   plugin.OperationCode
		}{
			{d.operation("", "none"), plugin.UnknownOperation}, {d.operation(id, "none"), plugin.UnknownOperation},
			{d.operation("", "about"), plugin.UnknownOperation}, {d.operation(id, "op.kept"), plugin.UnknownOperation},
			{d.operation("", "op.keep"), plugin.MissingSession}, {d.operation(id, "reset"), plugin.UnexpectedSession},
			{d.operation("", "shout"), plugin.OperationFailed},
			{&protocol.OperationParams{SessionID: id, Name: "op.keep", Args: json.RawMessage(`{"Text":5}`)}, plugin.OperationFailed},
		} {
			_, err := d.Operations.Command(t.Context(), c.params)
			if e, ok := errors.AsType[*plugin.OperationError](err); !ok || e.Code != c.code {
				t.Errorf("%s in %q: %v, want %s", c.params.Name, c.params.SessionID, err, c.code)
			}
		}
		if _, err := d.Operations.Command(t.Context(), d.operation("ses_none", "op.keep")); !errors.Is(err, persistence.ErrNotFound) {
			t.Errorf("no such session: %v", err)
		}
	})
	t.Run("plugin/OP-12 an action invokes the operation with its name, of any kind", func(t *testing.T) {
		for name, want := range map[string]string{"op.kept": `{"Text":"","Bulk":""}`, "op.keep": "null"} {
			r := must[*protocol.OperationReceipt](t)(d.Operations.Invoke(t.Context(), &protocol.OperationParams{SessionID: id, Name: name, Args: json.RawMessage(`{}`)}))
			if string(r.Output) != want || r.Plugin != "op" {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if _, err := d.Operations.Invoke(t.Context(), d.operation(id, "none")); !errors.As(err, new(*plugin.OperationError)) {
			t.Errorf("an action that is not there: %v", err)
		}
	})
}
