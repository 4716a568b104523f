package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// TestContributionsRefused checks that unusable contributions fail the build.
func TestContributionsRefused(t *testing.T) {
	event := func(resource, alias, name string) func(*plugin.Registrar) {
		return func(r *plugin.Registrar) {
			r.Triggers().Event(plugin.TriggerEvent{ResourceType: resource, Alias: alias, Event: name})
		}
	}
	work := func(context.Context, *plugin.TaskRun) *protocol.TaskOutcome { return nil }
	for name, c := range map[string]struct {
		register func(*plugin.Registrar)
		want     string // empty: it is accepted
	}{
		"a trigger of no resource": {event("", "mail", "new"), "its resource type, alias and event name are all required"},
		"a trigger of no alias":    {event("box", "", "new"), "its resource type, alias and event name are all required"},
		"a trigger of no event":    {event("box", "mail", ""), "its resource type, alias and event name are all required"},
		"a trigger":                {event("box", "mail", "new"), ""},
		"no handler":               {func(r *plugin.Registrar) { r.Tasks().Handler("a", nil) }, "a nil contribution"},
		"a handler without a name": {func(r *plugin.Registrar) { r.Tasks().Handler("", work) }, "without a name"},
		"two handlers of one name": {func(r *plugin.Registrar) { r.Tasks().Handler("a", work); r.Tasks().Handler("a", work) }, `two task handlers named "a"`},
		"two handlers":             {func(r *plugin.Registrar) { r.Tasks().Handler("a", work); r.Tasks().Handler("b", work) }, ""},
		"two turn inputs":          {func(r *plugin.Registrar) { r.Turn().Input(plugin.TurnInput{}); r.Turn().Input(plugin.TurnInput{}) }, "turn input twice"},
		"a wrong monitor":          {func(r *plugin.Registrar) { r.Monitors().Add(protocol.MonitorSpec{ID: "m"}) }, `registers a monitor "m"`},
		"no source of tools":       {func(r *plugin.Registrar) { r.Tools().Add(nil) }, "a nil contribution"},
		"no hook of prompts":       {func(r *plugin.Registrar) { r.Prompt().Hook(nil) }, "a nil contribution"},
		"a prompt of nothing":      {func(r *plugin.Registrar) { r.Prompt().Add(plugin.Prompt{}) }, "registers a prompt"},
	} {
		if c.want == "" {
			open(t, with("p", c.register))
		} else if got := refused(t, with("p", c.register)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, f := range map[string]plugin.Factory{
		"a bundle that fails":         plugin.Static("p", func(*plugin.Registrar) error { return errBoom }),
		"a bundle that is not made":   plugin.Builder("p", func(plugin.BuildContext) (plugin.Spec, error) { return nil, errBoom }),
		"tools that cannot be listed": with("p", func(r *plugin.Registrar) { r.Tools().Add(panicking{}) }),
	} {
		if got := refused(t, f); !strings.Contains(got, "boom") {
			t.Errorf("%s: %q", name, got)
		}
	}
	for n, want := range map[int]bool{59: true, 60: false} { // with the plugin and a colon, 100 bytes and one more
		monitor := with(strings.Repeat("p", 40), func(r *plugin.Registrar) {
			r.Monitors().Add(protocol.MonitorSpec{ID: strings.Repeat("m", n), Command: "true"})
		})
		if want {
			open(t, monitor)
		} else if got := refused(t, monitor); !strings.Contains(got, "longer than 100 bytes") {
			t.Errorf("a monitor of a long id: %q", got)
		}
	}
	if got := refused(t, plugin.Builder("p", func(plugin.BuildContext) (plugin.Spec, error) { return nil, nil })); !strings.Contains(got, "Build returned no plugin") {
		t.Errorf("no bundle: %q", got)
	}
}

// panicking is a source of tools whose Tools panics.
type panicking struct{ tools }

func (panicking) Tools() []tool.Tool { panic("boom") }

func TestHandlers(t *testing.T) {
	work := func(message string) plugin.TaskFunc {
		return func(context.Context, *plugin.TaskRun) *protocol.TaskOutcome {
			return &protocol.TaskOutcome{Message: message}
		}
	}
	register := func(id string) plugin.Factory {
		return with(id, func(r *plugin.Registrar) {
			r.Tasks().Handler("one", work(id+" one"))
			r.Tasks().Handler("two", work(id+" two"))
		})
	}
	s := open(t, register("a"), register("b"))
	for _, p := range []string{"a", "b"} {
		for _, name := range []string{"one", "two"} {
			if got := s.Handler(p, name)(t.Context(), nil).Message; got != p+" "+name {
				t.Errorf("the handler %s of %s is %q", name, p, got)
			}
		}
	}
	if s.Handler("c", "one") != nil {
		t.Error("there is a handler of a plugin that is not there")
	}
}

func TestSwitchedTools(t *testing.T) {
	first := with("a", func(r *plugin.Registrar) {
		r.Tools().Switch([]string{"x"}, []string{"y", "z"})
		r.Tools().Switch(nil, []string{"w"})
	})
	second := with("b", func(r *plugin.Registrar) { r.Tools().Switch([]string{"y"}, []string{"x"}) })
	got := open(t, first, second).Without()
	if want := []string{"w", "x", "z"}; len(got) != 3 || !got["w"] || !got["x"] || !got["z"] {
		t.Errorf("it begins without %v, want %v", got, want)
	}
}

// TestReadOnlyTasks checks that a query cannot change tasks.
func TestReadOnlyTasks(t *testing.T) {
	ask := func(ctx context.Context, c *plugin.OperationCall) (json.RawMessage, error) {
		s := c.Host.Tasks
		_, start := s.StartTask(ctx, nil)
		_, complete := s.CompleteTask(ctx, nil)
		_, transition := s.TransitionTask(ctx, nil)
		_, told := s.TellTask(ctx, nil)
		_, await := s.AwaitTasks(ctx, nil)
		_, signal := s.SignalTask(ctx, nil)
		_, cancel := s.CancelTask(ctx, nil)
		_, all := s.CancelTasks(ctx, nil)
		_, transfer := s.TransferTasks(ctx, nil)
		for name, err := range map[string]error{
			"start": start, "complete": complete, "transition": transition, "tell": told, "await": await, "signal": signal,
			"cancel": cancel, "cancel all": all, "transfer": transfer, "await hidden": s.AwaitHidden(ctx, ""),
		} {
			if !errors.As(err, new(*plugin.UnavailableError)) {
				return nil, fmt.Errorf("%s: %w", name, cmpErr(err))
			}
		}
		return raw(`1`), nil
	}
	s := open(t, with("p", func(r *plugin.Registrar) { r.Operations().Query(info("q", protocol.SessionOptional), ask) }))
	if _, err := s.Query(t.Context(), "q", &plugin.OperationCall{Host: everything()}, plugin.Target{}); err != nil {
		t.Error(err)
	}
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("it is done")
	}
	return err
}

func TestWithoutTasks(t *testing.T) {
	var none plugin.Capabilities
	if err := none.ValidateHandles(t.Context(), "s", []protocol.TaskID{"t"}); err != nil {
		t.Errorf("without tasks handles are checked: %v", err)
	}
	if err := none.AwaitHidden(t.Context(), "s"); err != nil {
		t.Errorf("without tasks there is something to wait for: %v", err)
	}
	if _, err := none.TransferHandles(t.Context(), &protocol.TaskTransferParams{TaskIDs: []protocol.TaskID{"t"}}); !errors.As(err, new(*plugin.UnavailableError)) {
		t.Errorf("without tasks handles are transferred: %v", err)
	}
	some := plugin.Capabilities{Tasks: failingTasks{}}
	if err := some.ValidateHandles(t.Context(), "s", nil); err != nil {
		t.Errorf("no handles are checked: %v", err)
	}
	if err := some.ValidateHandles(t.Context(), "s", []protocol.TaskID{"t"}); !errors.Is(err, errBoom) {
		t.Errorf("a handle is not checked: %v", err)
	}
	if err := some.AwaitHidden(t.Context(), "s"); !errors.Is(err, errBoom) {
		t.Errorf("without a waiter: %v", err)
	}
	if _, err := some.TransferHandles(t.Context(), &protocol.TaskTransferParams{TaskIDs: []protocol.TaskID{"t"}}); !errors.Is(err, errBoom) {
		t.Errorf("a handle is not transferred: %v", err)
	}
}

// failingTasks is a TaskService whose methods fail.
type failingTasks struct{ plugin.TaskService }

func (failingTasks) ValidateVisible(context.Context, protocol.SessionID, []protocol.TaskID) error {
	return errBoom
}
func (failingTasks) AwaitHidden(context.Context, protocol.SessionID) error { return errBoom }
func (failingTasks) TransferTasks(context.Context, *protocol.TaskTransferParams) ([]protocol.Task, error) {
	return nil, errBoom
}

func TestMessagesOfErrors(t *testing.T) {
	failed := protocol.Task{ID: "t", State: protocol.TaskFailed}
	because := failed
	because.Outcome = &protocol.TaskOutcome{Message: "no disk"}
	silent := failed
	silent.Outcome = &protocol.TaskOutcome{}
	for want, err := range map[string]error{
		"hidden task t has failed":                                               &plugin.TaskFailedError{Task: failed},
		"hidden task t has failed: no disk":                                      &plugin.TaskFailedError{Task: because},
		"the turn options have schema version 3, but the plugin reads version 2": &plugin.OptionsError{Version: 3, Want: 2},
		"invalid options: boom":                                                  &plugin.OptionsError{Err: errBoom},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&plugin.TaskFailedError{Task: silent}).Error(); got != "hidden task t has failed" {
		t.Errorf("%q", got)
	}
	if !errors.Is(&plugin.OptionsError{Err: errBoom}, errBoom) {
		t.Error("the cause is lost")
	}
}

// away is the factory of a plugin that does not ship with lashd.
type away struct {
	plugin.Factory
	sandbox bool
}

func (a away) Sandboxed() bool { return a.sandbox }

func TestWhatPluginsAre(t *testing.T) {
	s := open(t, with("ships", func(*plugin.Registrar) {}), away{with("boxed", func(*plugin.Registrar) {}), true}, away{with("free", func(*plugin.Registrar) {}), false})
	for id, want := range map[string][3]bool{"ships": {true, true, false}, "boxed": {true, false, true}, "free": {true, false, false}, "none": {}} {
		if got := [3]bool{s.Has(id), s.Ships(id), s.Sandboxed(id)}; got != want {
			t.Errorf("%s: has, ships, sandboxed: %v, want %v", id, got, want)
		}
	}
}

func TestSandboxedResponses(t *testing.T) {
	call := protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c", Name: "x"}}
	adds := with("p", func(r *plugin.Registrar) {
		r.Output().Response(func(_ context.Context, c plugin.Response) (plugin.Response, error) {
			return plugin.Response{Parts: append(c.Parts, call)}, nil
		})
	})
	for _, boxed := range []bool{false, true} {
		_, err := open(t, away{adds, boxed}).Response(t.Context(), plugin.Response{Parts: []protocol.Part{{Kind: protocol.PartText, Text: "hi"}}})
		if failed, _ := errors.AsType[*plugin.HookError](err); (failed != nil && failed.Plugin == "p") != boxed {
			t.Errorf("in a sandbox %t: %v", boxed, err)
		}
	}
}

func TestHostsThatOpenNothing(t *testing.T) {
	done, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	h := newHost(t)
	if s, err := h.Open(done, "d", nil, plugin.BuildContext{SessionID: "s"}); s != nil || !errors.Is(err, errBoom) {
		t.Errorf("without a plugin: %v", err)
	}
	other, err := h.With([]plugin.Factory{with("more", func(*plugin.Registrar) {})})
	if err != nil || !slices.Equal(other.IDs(), []string{"more"}) {
		t.Errorf("with one more: %v, %v", other, err)
	}
	s, err := other.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := h.Session("s"); found != s || err != nil {
		t.Errorf("the first host does not know the session: %v", err)
	}
	if broken, err := h.With([]plugin.Factory{with("x", nil), with("x", nil)}); err == nil {
		t.Errorf("two of one id: %v", broken)
	}
	gone := h.Retire()
	<-gone
	if s, err := h.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "t"}); s != nil || !errors.Is(err, plugin.ErrRetired) {
		t.Errorf("retired: %v", err)
	}
	last := other.Retire()
	select {
	case <-last:
		t.Error("it is closed while a session is open")
	default:
	}
	if other.Retire() != last {
		t.Error("retired again it is another one")
	}
	s.Leave()
	if _, err := other.Session("s"); err == nil {
		t.Error("the closed session is still listed")
	}
	if err := s.Return(); err != nil {
		t.Errorf("it does not return: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-last
}

func TestFlawsOfDirectives(t *testing.T) {
	for name, d := range map[string]plugin.Directive{
		"no arguments": {Kind: plugin.ReplaceToolArgs},
		"no approval":  {Kind: plugin.RequireApproval},
		"no result":    {Kind: plugin.ShortCircuitTool, Output: &protocol.ToolOutput{}},
	} {
		if v, _ := judge(t, plugin.HookBeforeTool, always("p", d)); !v.Denied || v.Approval != nil || v.Args != nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestNothingToLookAt(t *testing.T) {
	if got := plugin.ReadOnly(nil); got != nil {
		t.Errorf("without a state there is %T", got)
	}
	var host plugin.Capabilities
	ask := func(_ context.Context, c *plugin.OperationCall) (json.RawMessage, error) {
		host = c.Host
		return raw(`1`), nil
	}
	s := open(t, with("p", func(r *plugin.Registrar) { r.Operations().Query(info("q", protocol.SessionOptional), ask) }))
	if _, err := s.Query(t.Context(), "q", &plugin.OperationCall{}, plugin.Target{}); err != nil || host.Tasks != nil || host.State != nil {
		t.Errorf("a query is given %+v, %v", host, err)
	}
	if _, found := new(plugin.ArtifactReader).Read("none"); found {
		t.Error("there is an artifact that no tool wrote")
	}
}

func TestReadOnlyState(t *testing.T) {
	var read, tools plugin.StateService
	ask := func(_ context.Context, c *plugin.OperationCall) (json.RawMessage, error) {
		read = c.Host.State
		return raw(`1`), nil
	}
	s := open(t, with("p", func(r *plugin.Registrar) {
		r.Operations().Query(info("q", protocol.SessionOptional), ask)
		r.ToolCalls().Before(func(_ context.Context, c *plugin.ToolCallContext) ([]plugin.Directive, error) {
			tools = c.Host.State
			return nil, nil
		})
	}))
	if _, err := s.Query(t.Context(), "q", &plugin.OperationCall{Host: everything()}, plugin.Target{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.BeforeToolCall(t.Context(), &plugin.ToolCallContext{Host: everything()}); err != nil {
		t.Fatal(err)
	}
	_, member := read.SetMembership(t.Context(), "s", nil, true)
	_, available := read.SetAvailability(t.Context(), "s", nil, "")
	_, state := tools.ToolState(t.Context(), "s")
	_, theirs := tools.SetAvailability(t.Context(), "s", nil, "")
	for name, err := range map[string]error{"membership": member, "availability": available, "the state of tools before a call": state, "availability before a call": theirs} {
		if !errors.As(err, new(*plugin.UnavailableError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOptionsThatAreNoObject(t *testing.T) {
	o := func(payload string) *protocol.TurnOptions {
		return &protocol.TurnOptions{SchemaVersion: 1, Payload: raw(payload)}
	}
	for _, c := range []struct{ session, turn, want string }{
		{`null`, `{"a":1}`, `{"a":1}`}, {`{"a":1}`, `null`, `null`}, {`[1]`, `{"a":1}`, `{"a":1}`}, {`{"a":1}`, `[1]`, `[1]`}, {`{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`},
	} {
		if got, err := plugin.MergeTurnOptions(o(c.session), o(c.turn)); err != nil || string(got.Payload) != c.want {
			t.Errorf("%s over %s: %s, %v, want %s", c.turn, c.session, got.Payload, err, c.want)
		}
	}
}

func TestHostsAreLeft(t *testing.T) {
	free := func(what string, h *plugin.Host) {
		t.Helper()
		select {
		case <-h.Retire():
		default:
			t.Errorf("%s: the host thinks that a session is open", what)
		}
	}
	unknown := newHost(t)
	if _, err := unknown.Open(t.Context(), "none", nil, plugin.BuildContext{}); !errors.Is(err, plugin.ErrNoDriver) {
		t.Errorf("an unknown driver: %v", err)
	}
	free("an unknown driver", unknown)
	broken := newHost(t, plugin.Static("p", func(*plugin.Registrar) error { return errBoom }))
	if _, err := broken.Open(t.Context(), "d", nil, plugin.BuildContext{}); err == nil {
		t.Error("a broken plugin opens")
	}
	free("a broken plugin", broken)
	ctx, cancel := context.WithCancelCause(t.Context())
	built := 0
	stops := func(id string) plugin.Factory { return with(id, func(*plugin.Registrar) { built++; cancel(errBoom) }) }
	stopped := newHost(t, stops("a"), stops("b"))
	if _, err := stopped.Open(ctx, "d", nil, plugin.BuildContext{SessionID: "s"}); !errors.Is(err, errBoom) || built != 1 {
		t.Errorf("given up after the first plugin: %v, %d were built", err, built)
	}
	free("given up", stopped)
	unnamed := newHost(t)
	for range 2 {
		s, err := unnamed.Open(t.Context(), "d", nil, plugin.BuildContext{})
		if err != nil {
			t.Fatalf("a session without an id: %v", err)
		}
		defer s.Close()
	}
	if _, err := unnamed.Session(""); err == nil {
		t.Error("a session without an id is known")
	}
}

func TestOverrideOfTheFirst(t *testing.T) {
	if got := plugin.Override(plugin.Stack{driver("a"), driver("b")}, plugin.Stack{driver("a")}).IDs(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("%q", got)
	}
}

func TestSessionsBesideEachOther(t *testing.T) {
	h := newHost(t)
	for _, id := range []protocol.SessionID{"a", "b"} {
		s, err := h.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
	}
	for _, id := range []protocol.SessionID{"a", "b"} {
		if s, err := h.Session(id); err != nil || s.ID() != id {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestWorkIsGranted(t *testing.T) {
	var models, tasks bool
	_, err := open(t).Work(t.Context(), "p", func(_ context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
		models, tasks = run.Host.Models != nil, run.Host.Tasks != nil
		return nil
	}, &plugin.TaskRun{Host: everything()})
	if err != nil || models || !tasks {
		t.Errorf("work is given models %t, tasks %t, %v", models, tasks, err)
	}
}

func TestSandboxesOfExecutors(t *testing.T) {
	runs := with("p", func(r *plugin.Registrar) { r.Execution().Executor(executor{}) })
	for name, s := range map[string]*plugin.Session{"no executor": open(t), "one that ships": open(t, runs), "one without": open(t, away{runs, false})} {
		if s.ExecutorSandboxed() {
			t.Errorf("%s is in a sandbox", name)
		}
	}
	if !open(t, away{runs, true}).ExecutorSandboxed() {
		t.Error("one in a sandbox is not")
	}
}
