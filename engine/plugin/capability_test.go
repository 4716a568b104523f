package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// engine is a stand-in for the engine with every service.
type engine struct {
	plugin.StateService
	plugin.LifecycleService
	plugin.GraphService
	plugin.CompletionService
	plugin.TaskService
	plugin.MonitorService
	traced []string
}

func (e *engine) Trace(name string, _ json.RawMessage) { e.traced = append(e.traced, name) }

func (*engine) View(context.Context, protocol.SessionID) (*plugin.View, error) { return nil, nil }

func (*engine) Catalog(context.Context, protocol.SessionID) ([]protocol.ToolRecord, error) {
	return nil, nil
}

func (*engine) SetMembership(context.Context, protocol.SessionID, []string, bool) (int64, error) {
	return 1, nil
}

func (*engine) ApplyToolState(context.Context, protocol.SessionID, protocol.ToolState) (int64, error) {
	return 1, nil
}

func (*engine) ListTasks(context.Context, *protocol.TaskListParams) (*protocol.TaskListResult, error) {
	return nil, nil
}

func (*engine) CancelTasks(context.Context, *protocol.TaskCancelAllParams) ([]protocol.Task, error) {
	return nil, nil
}

func everything() plugin.Capabilities {
	e := &engine{}
	return plugin.Capabilities{State: e, Lifecycle: e, Graph: e, Models: e, Tasks: e, Monitors: e, Tracer: e}
}

// has returns the names of the capabilities that work.
func has(ctx context.Context, c plugin.Capabilities) string {
	var list []string
	try := func(name string, err error) {
		if err == nil {
			list = append(list, name)
		} else if _, ok := errors.AsType[*plugin.UnavailableError](err); !ok {
			list = append(list, name+": "+err.Error())
		}
	}
	if state, err := c.NeedState(); err == nil {
		_, err = state.View(ctx, "")
		try("view", err)
		_, err = state.Catalog(ctx, "")
		try("catalog", err)
		_, err = state.SetMembership(ctx, "", nil, true)
		try("member", err)
		_, err = state.ApplyToolState(ctx, "", protocol.ToolState{})
		try("apply", err)
	}
	_, err := c.NeedLifecycle()
	try("lifecycle", err)
	_, err = c.NeedGraph()
	try("graph", err)
	_, err = c.NeedModels()
	try("models", err)
	if tasks, err := c.NeedTasks(); err == nil {
		_, err = tasks.ListTasks(ctx, nil)
		try("seetasks", err)
		_, err = tasks.CancelTasks(ctx, nil)
		try("tasks", err)
	}
	_, err = c.NeedMonitors()
	try("monitors", err)
	if c.Tracer != nil {
		list = append(list, "trace")
	}
	return strings.Join(list, " ")
}

const state = "view catalog member apply"

// granted lists the capabilities that each hook should have.
var granted = map[plugin.Hook]string{
	plugin.HookPrompt:          state + " trace",
	plugin.HookBeforeTurn:      state + " trace",
	plugin.HookBeforeTool:      "view member trace",
	plugin.HookAfterTool:       "view member trace",
	plugin.HookCheckpoint:      state + " lifecycle graph trace",
	plugin.HookAfterTurn:       state + " trace",
	plugin.HookConfigMutator:   state + " trace",
	plugin.HookConfigChanged:   state + " trace",
	plugin.HookTurnPersisted:   state + " graph models trace",
	plugin.HookTurnFinalized:   "",
	plugin.HookSessionRestored: "",
	plugin.HookTransform:       state + " lifecycle graph models trace",
	plugin.HookCompactor:       state + " lifecycle graph trace",
	plugin.HookBeforeModel:     state + " graph seetasks tasks trace",
	plugin.HookProjector:       "",
	plugin.HookQuery:           "view catalog seetasks trace",
	plugin.HookCommand:         state + " lifecycle graph seetasks tasks monitors trace",
	plugin.HookTask:            state + " lifecycle graph seetasks tasks monitors trace",
}

func TestGrants(t *testing.T) {
	got := map[plugin.Hook]string{}
	s := open(t, with("p", func(r *plugin.Registrar) { listenEverywhere(r, got) }))
	callEverything(t, s, everything())
	for hook, want := range granted {
		if have, called := got[hook]; have != want || !called {
			t.Errorf("plugin/HC-02 %s has %q, want %q; called: %v", hook, have, want, called)
		}
	}
}

func TestUnavailable(t *testing.T) {
	t.Run("plugin/HC-02 the error names the missing capability, and tracing never fails", func(t *testing.T) {
		var none plugin.Capabilities
		var got []string
		for _, need := range []func() error{
			func() error { _, err := none.NeedState(); return err }, func() error { _, err := none.NeedLifecycle(); return err },
			func() error { _, err := none.NeedGraph(); return err }, func() error { _, err := none.NeedModels(); return err },
			func() error { _, err := none.NeedTasks(); return err },
			func() error { _, err := none.NeedMonitors(); return err },
		} {
			if e, ok := errors.AsType[*plugin.UnavailableError](need()); ok {
				got = append(got, e.Capability)
			}
		}
		if !slices.Equal(got, []string{"session state", "session lifecycle", "session graph", "direct completions", "tasks", "monitors"}) {
			t.Errorf("%q", got)
		}
		none.Trace("dropped", nil)
		e := &engine{}
		plugin.Capabilities{Tracer: e}.Trace("kept", nil)
		if !slices.Equal(e.traced, []string{"kept"}) {
			t.Errorf("%q", e.traced)
		}
	})
	t.Run("plugin/HC-02 plugin/HC-14 without tasks, releasing handles succeeds and transferring them fails", func(t *testing.T) {
		var none plugin.Capabilities
		some := []protocol.TaskID{"tsk_a"}
		if err := errors.Join(none.ValidateHandles(t.Context(), "", some), none.AwaitHidden(t.Context(), "")); err != nil {
			t.Errorf("handles: %v", err)
		}
		if _, err := none.TransferHandles(t.Context(), &protocol.TaskTransferParams{}); err != nil {
			t.Errorf("no handle is given away: %v", err)
		}
		if _, err := none.TransferHandles(t.Context(), &protocol.TaskTransferParams{TaskIDs: some}); !errors.As(err, new(*plugin.UnavailableError)) {
			t.Errorf("a handle is given away: %v", err)
		}
	})
	if g := plugin.Granted("nonsense"); g != (plugin.Grants{}) {
		t.Errorf("plugin/HC-02 a hook that is not known is granted %+v", g)
	}
}
