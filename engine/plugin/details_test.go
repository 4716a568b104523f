package plugin_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// TestCopies checks that hooks cannot change shared arguments and that plugins cannot change values they returned.
func TestCopies(t *testing.T) {
	t.Run("a hook changes only its own copy of its arguments", func(t *testing.T) {
		var shown bool
		s := open(t, with("p", func(r *plugin.Registrar) {
			r.Turn().After(func(_ context.Context, sum *plugin.TurnSummary) ([]plugin.Directive, error) {
				sum.Report.Issues[0].Message = "spoilt"
				return nil, nil
			})
			r.Turn().Before(func(_ context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
				shown = tc.Inputs != nil
				return nil, nil
			})
		}))
		report := &protocol.TurnReport{Issues: []protocol.Issue{{Message: "true"}}}
		if _, err := s.AfterTurn(t.Context(), &plugin.TurnSummary{Report: report}); err != nil || report.Issues[0].Message != "true" {
			t.Errorf("the report has %+v, %v", report.Issues, err)
		}
		if _, err := s.BeforeTurn(t.Context(), &plugin.TurnContext{}); err != nil || shown {
			t.Errorf("inputs that are not there are shown: %t, %v", shown, err)
		}
	})
	t.Run("a prompt hook changes only its own copy of the inputs", func(t *testing.T) {
		s := open(t, with("p", func(r *plugin.Registrar) {
			r.Prompt().Hook(func(_ context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
				pc.Inputs["p"] = raw(`2`)
				return nil, nil
			})
		}))
		inputs := protocol.PluginInputs{"p": raw(`1`)}
		if _, err := s.Prompts(t.Context(), &plugin.PromptContext{Inputs: inputs}); err != nil || string(inputs["p"]) != `1` {
			t.Errorf("inputs %s, %v", inputs["p"], err)
		}
	})
	t.Run("a registered value is independent of the plugin's copy", func(t *testing.T) {
		needs, input := []string{"t"}, raw(`{"type":"object"}`)
		env := map[string]string{"A": "1"}
		s := open(t, with("p", func(r *plugin.Registrar) {
			r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotIntro, Content: "hi", Tools: needs})
			r.Operations().Query(protocol.OperationInfo{Name: "q", Input: input}, query)
			r.Monitors().Add(protocol.MonitorSpec{ID: "m", Command: "true", Env: env})
		}))
		needs[0], env["A"] = "spoilt", "2"
		copy(input, `spoilt`)
		if got := s.Texts()[0].Tools[0]; got != "t" {
			t.Errorf("the prompt needs %s", got)
		}
		if got := string(s.Operations()[0].Input); got != `{"type":"object"}` {
			t.Errorf("the operation takes %s", got)
		}
		if got := s.Monitors()[0].Spec.Env["A"]; got != "1" {
			t.Errorf("the monitor has A=%s", got)
		}
	})
	t.Run("a stream hook's own events are not modified", func(t *testing.T) {
		mine := []plugin.RuntimeEvent{{Name: "e"}}
		s := open(t, streams("p", func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) {
			c.Events = mine
			return c, nil
		}))
		if got, err := s.Stream(t.Context(), plugin.StreamChunk{Text: "x"}); err != nil || got.Events[0].Plugin != "p" || mine[0].Plugin != "" {
			t.Errorf("events %+v, its own %+v, %v", got.Events, mine, err)
		}
	})
}

// clumsyCells is a code executor whose state can be neither captured nor restored.
type clumsyCells struct{ cells }

func (*clumsyCells) Snapshot(context.Context) (plugin.ExecutionChange, error) {
	return plugin.ExecutionChange{}, errBoom
}
func (*clumsyCells) Restore(context.Context, map[string][]byte) error { return errBoom }

func TestStateOfExecutors(t *testing.T) {
	runs := func(e plugin.CodeExecutor) *plugin.Session {
		return open(t, with("p", func(r *plugin.Registrar) { r.Execution().Executor(e) }))
	}
	c := &cells{ran: "x"}
	s := runs(c)
	if !s.Executes() || open(t).Executes() {
		t.Error("code runs that does not, or the other way round")
	}
	if err := s.RestoreExecution(t.Context(), map[string][]byte{"ran": []byte("kept")}); err != nil || c.ran != "kept" {
		t.Errorf("restored to %q, %v", c.ran, err)
	}
	var beside error
	c.during = func() {
		c.during = nil
		_, beside = s.Execute(t.Context(), &plugin.CodeCall{Source: "beside"}, nil)
	}
	if got, err := s.Execute(t.Context(), &plugin.CodeCall{Source: "y"}, nil); err != nil || got.Printed != "kepty" || beside == nil {
		t.Errorf("a cell in a cell: %v; the outer one: %+v, %v", beside, got, err)
	}
	bad := runs(&clumsyCells{cells{ran: "x"}})
	if x, err := bad.CaptureExecution(t.Context()); x != nil || !errors.Is(err, errBoom) {
		t.Errorf("captured %+v, %v", x, err)
	}
	if err := bad.RestoreExecution(t.Context(), map[string][]byte{"x": nil}); !errors.Is(err, errBoom) {
		t.Errorf("restored: %v", err)
	}
}

// TestReinspected returns unusual directives from hooks that run a second time.
func TestReinspected(t *testing.T) {
	on := func(id, what string, ds ...plugin.Directive) policy {
		return policy{id, map[string][]plugin.Directive{what: ds}}
	}
	replace := on("b", "1", plugin.ReplaceArgs(raw(`2`)))
	for _, c := range []struct {
		name       string
		seam       plugin.Hook
		by         []policy
		seen, want string
	}{
		{"a second run may return several directives", beforeTool, []policy{on("a", "2", plugin.Tell(), deny("x")), replace}, "a 1, b 1, a 2", "a denies x"},
		{"an invalid directive of a second run is dropped", beforeTool, []policy{on("a", "2", plugin.Directive{Kind: plugin.ShortCircuitTool}), replace}, "a 1, b 1, a 2", "run"},
		{"a result in place of a call causes no second run", beforeTool, []policy{always("a"), always("b", allow)}, "a 1, b 1", "b gives allowed"},
		{"a rejection after a call causes no second run", afterTool, []policy{always("a"), always("b", deny("x"))}, "a 1, b 1", "b denies x"},
	} {
		t.Run("plugin/HK-11 "+c.name, func(t *testing.T) {
			v, seen := judge(t, c.seam, c.by...)
			if got := strings.Join(seen, ", "); got != c.seen || verdict(v) != c.want {
				t.Errorf("seen %s, want %s; verdict %s, want %s", got, c.seen, verdict(v), c.want)
			}
		})
	}
	t.Run("plugin/HK-12 the verdict names the plugins that replaced the arguments", func(t *testing.T) {
		if v, _ := judge(t, beforeTool, always("a"), replace); !slices.Equal(v.ArgsBy, []string{"b"}) {
			t.Errorf("by %q", v.ArgsBy)
		}
	})
	t.Run("plugin/HK-11 a hook that fails in its second run fails the call", func(t *testing.T) {
		clumsy := with("a", func(r *plugin.Registrar) {
			r.ToolCalls().Before(func(_ context.Context, c *plugin.ToolCallContext) ([]plugin.Directive, error) {
				if string(c.Args) == "2" {
					return nil, errBoom
				}
				return nil, nil
			})
		})
		v, err := open(t, clumsy, replace.factory(new([]string))).BeforeToolCall(t.Context(), &plugin.ToolCallContext{Args: raw(`1`)})
		if err != nil || verdict(v) != "a denies before_tool_call_failed" || !errors.Is(v.Err, errBoom) {
			t.Errorf("%+v, %v", v, err)
		}
	})
	t.Run("plugin/HK-07 a result without a status is invalid", func(t *testing.T) {
		v, _ := judge(t, beforeTool, always("a", plugin.Directive{Kind: plugin.ShortCircuitTool, Output: &protocol.ToolOutput{}}))
		if want := "plugin a: before_tool_call: " + string(plugin.ShortCircuitTool) + " has no result"; v.Output.Text != want {
			t.Errorf("%s, want %s", v.Output.Text, want)
		}
	})
}

func TestCheckpointsAreNotMarked(t *testing.T) {
	var marks []string
	s := open(t, with("p", func(r *plugin.Registrar) {
		r.Turn().Checkpoint(func(context.Context, *plugin.CheckpointContext) ([]plugin.Directive, error) { return nil, nil })
	}))
	s.SetProbe(func(mark string) { marks = append(marks, mark) })
	if _, err := s.Checkpoint(t.Context(), &plugin.CheckpointContext{}); err != nil || marks != nil {
		t.Errorf("marks %q, %v", marks, err)
	}
}

func TestMessagesOfViews(t *testing.T) {
	if got := new(plugin.View).Messages(); got != nil {
		t.Errorf("a view that holds nothing has %+v", got)
	}
	first, second := says("one"), says("two")
	view := new(plugin.View).WithMessages([]*protocol.Message{&first, &second}, says("three"))
	if diff := cmp.Diff([]protocol.Message{says("one"), says("two"), says("three")}, view.Messages()); diff != "" {
		t.Error(diff)
	}
}

// bare is a factory without a Shutdown method.
type bare struct{ id string }

func (b bare) ID() string                                     { return b.id }
func (bare) Build(plugin.BuildContext) (plugin.Plugin, error) { return bare{}, nil }
func (bare) Register(*plugin.Registrar) error                 { return nil }

func TestHostsOfOthers(t *testing.T) {
	var log []string
	h := newHost(t, bare{"a"}, noted{id: "b", log: &log}, bare{"c"})
	if err := h.Shutdown(t.Context()); err != nil || !slices.Equal(log, []string{"shutdown b"}) {
		t.Errorf("shut down %q, %v", log, err)
	}
	other, err := h.With([]plugin.Factory{bare{"z"}}, "b", "c")
	if err != nil || !slices.Equal(other.IDs(), []string{"a", "z"}) {
		t.Errorf("without two and with one more: %v", err)
	}
	if h.Revoked() {
		t.Error("no verdict denies it")
	}
	if h.Revoke(); !h.Revoked() || other.Revoked() {
		t.Error("a person has decided against it, and not against the other")
	}
}

func TestRetiredWithTwo(t *testing.T) {
	h := newHost(t)
	var all []*plugin.Session
	for range 2 {
		s, err := h.Open(t.Context(), "d", nil, plugin.BuildContext{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	gone := h.Retire()
	_ = all[0].Close()
	select {
	case <-gone:
		t.Error("it is closed while a session is open")
	default:
	}
	_ = all[1].Close()
	<-gone
}

func TestReturnTooLate(t *testing.T) {
	h := newHost(t)
	var all []*plugin.Session
	for range 2 {
		s, err := h.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.Leave()
		all = append(all, s)
	}
	if err := all[1].Return(); err != nil {
		t.Error(err)
	}
	if err := all[0].Return(); !errors.Is(err, plugin.ErrOpen) {
		t.Errorf("another session has the id: %v", err)
	}
}

func TestMonitorsOfPlugins(t *testing.T) {
	declares := func(id string, ids ...string) plugin.Factory {
		return with(id, func(r *plugin.Registrar) {
			for _, m := range ids {
				r.Monitors().Add(protocol.MonitorSpec{ID: m, Command: "true"})
			}
		})
	}
	want := []plugin.MonitorDeclaration{
		{Plugin: "p", Spec: protocol.MonitorSpec{ID: "p:m", Command: "true", TimeoutMs: 300_000, ArmOn: protocol.ArmManual, Wake: protocol.WakeTurn}},
		{Plugin: "monitor", Spec: protocol.MonitorSpec{ID: "m", Command: "true", TimeoutMs: 300_000, ArmOn: protocol.ArmManual, Wake: protocol.WakeTurn}},
	}
	if diff := cmp.Diff(want, open(t, declares("p", "m"), declares("monitor", "m")).Monitors()); diff != "" {
		t.Error(diff)
	}
	if got := refused(t, declares("p", "m", "n", "m")); !strings.Contains(got, "registers the monitor p:m twice") {
		t.Errorf("%s", got)
	}
}

func TestSandboxedResponsesThatAddNothing(t *testing.T) {
	says := func(do plugin.ResponseHook) *plugin.Session {
		return open(t, away{with("p", func(r *plugin.Registrar) { r.Output().Response(do) }), true})
	}
	reply := plugin.Response{Parts: []protocol.Part{{Kind: protocol.PartText, Text: "hi"}}}
	got, err := says(func(_ context.Context, c plugin.Response) (plugin.Response, error) {
		c.Parts[0].Text = "ho"
		return c, nil
	}).Response(t.Context(), reply)
	if err != nil || got.Parts[0].Text != "ho" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = says(func(context.Context, plugin.Response) (plugin.Response, error) { return plugin.Response{}, errBoom }).Response(t.Context(), reply)
	if !errors.Is(err, errBoom) {
		t.Errorf("one that fails: %v", err)
	}
}

// TestLaxMutator checks that a mutator cannot change the options of another plugin.
func TestLaxMutator(t *testing.T) {
	s := open(t, mutates("a", func(_ context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
		c.Config.Options = protocol.PluginOptions{"b": raw(`2`)}
		return c.Config, nil
	}), mutates("c", func(_ context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
		return protocol.Config{}, errBoom
	}))
	got, failed := s.MutateConfig(t.Context(), protocol.Config{}, protocol.Config{Prompt: "x"}, plugin.Capabilities{})
	if got.Options != nil || got.Prompt != "x" || len(failed) != 2 || !strings.Contains(failed[0].Err.Error(), "its own options only") || !errors.Is(failed[1].Err, errBoom) {
		t.Errorf("%+v, failures %v", got, failed)
	}
}

func TestNewSession(t *testing.T) {
	start := protocol.SessionStart{Kind: "empty"}
	if p := plugin.NewSession(start); p.Relation.Kind != "" || p.PluginSource != protocol.PluginsFresh {
		t.Errorf("a new session: %+v", p)
	}
	if p := plugin.NewChild(start); p.Relation.Kind != protocol.RelationChild || p.PluginSource != protocol.PluginsFresh {
		t.Errorf("a child: %+v", p)
	}
}

// TestLeftOperations checks the error code of each way in which a command can fail.
func TestLeftOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var fail error
		s := open(t, with("p", func(r *plugin.Registrar) {
			r.Operations().Command(info("c", protocol.SessionOptional), func(_ context.Context, call *plugin.OperationCall) (*plugin.OperationResult, error) {
				if fail != nil {
					return nil, fail
				}
				<-hold
				return nil, nil
			})
		}))
		command := func(ctx context.Context) error {
			_, err := s.Command(ctx, "c", &plugin.OperationCall{}, plugin.Target{})
			return err
		}
		if err := command(t.Context()); code(err) != plugin.OperationAbandoned || !errors.Is(err, plugin.ErrSlowHook) {
			t.Errorf("after half an hour: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { synctest.Wait(); cancel(errBoom) }()
		if err := command(ctx); code(err) != plugin.OperationAbandoned || !errors.Is(err, errBoom) {
			t.Errorf("after its context: %v", err)
		}
		close(hold)
		synctest.Wait()
		fail = errBoom
		if err := command(t.Context()); code(err) != plugin.OperationFailed || !errors.Is(err, errBoom) {
			t.Errorf("by itself: %v", err)
		}
	})
}

func TestResultsOfOperations(t *testing.T) {
	input := []protocol.InputPart{{Type: protocol.InputText, Text: "hi"}}
	for want, r := range map[string]*plugin.OperationResult{
		"":                                      {Queue: []plugin.QueueTurn{{Input: input}}},
		`event "" needs a type and a JSON body`: {Events: []protocol.PluginNode{{Body: raw(`1`)}}},
	} {
		s := open(t, queries(func(g plugin.OperationGroup) {
			g.Command(info("c", "forbidden"), func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) { return r, nil })
		}))
		got, err := s.Command(t.Context(), "c", &plugin.OperationCall{}, plugin.Target{})
		if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) || err == nil && len(got.Queue) != 1 {
			t.Errorf("%+v, %v, want %q", got, err, want)
		}
	}
}

func TestShapers(t *testing.T) {
	s := open(t, with("a", func(r *plugin.Registrar) {
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotIntro, Content: "hi"})
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotIntro, Content: "ho"})
		r.Prompt().Hook(func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) { return nil, nil })
	}), with("b", func(r *plugin.Registrar) {
		r.Context().Transform(0, func(_ context.Context, _ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			return pc, nil
		})
	}))
	var got []string
	for _, e := range s.Shapers() {
		got = append(got, e.Error())
	}
	why := ": skipped because the session is in use"
	if want := []string{"plugin b: context_transform" + why, "plugin a: prompt" + why}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPluginTriedAlone(t *testing.T) {
	var r plugin.Registrar
	r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotIntro, Content: "hi"})
	r.Triggers().Event(plugin.TriggerEvent{ResourceType: "box", Alias: "mail", Event: "new"})
	r.Protocol().Driver(silent{"x"})
}

// leaving is a plugin whose Revision ends its goroutine.
type leaving struct{ *memory }

func (l leaving) Build(plugin.BuildContext) (plugin.Plugin, error) { return l, nil }
func (leaving) Revision() uint64                                   { runtime.Goexit(); return 0 }

func TestRevisionEndsItsGoroutine(t *testing.T) {
	if _, err := open(t, leaving{mem("m")}).Fingerprint(t.Context()); err == nil || err.Error() != "called runtime.Goexit instead of returning" {
		t.Errorf("%v", err)
	}
}

// reads is a plugin that reads an artifact when it is restored.
type reads struct {
	*memory
	got map[string]string
}

func (r reads) Build(plugin.BuildContext) (plugin.Plugin, error) { return r, nil }

func (r reads) Restore(_ context.Context, _ plugin.Meta, a *plugin.ArtifactReader) error {
	for _, name := range []string{"one", "two", "three"} {
		if data, ok := a.Read(name); ok {
			r.got[name] = string(data)
		}
	}
	return nil
}

func TestArtifactsByName(t *testing.T) {
	r := reads{mem("m"), map[string]string{}}
	restore(t, open(t, r), plugin.Snapshot{Entries: map[string]plugin.Entry{"m": {
		Artifacts: []plugin.Artifact{{Name: "one", Data: []byte("1")}, {Name: "two", Data: []byte("2")}},
	}}})
	if diff := cmp.Diff(map[string]string{"one": "1", "two": "2"}, r.got); diff != "" {
		t.Error(diff)
	}
}

func TestTurnRequests(t *testing.T) {
	for _, c := range []struct {
		request plugin.TurnRequest
		want    plugin.TurnRequestCode
	}{
		{plugin.TurnRequest{TurnID: "t", SessionID: "s"}, ""},
		{plugin.TurnRequest{TurnID: "t", SessionID: "s", Scope: plugin.TurnScope{TurnID: "t", SessionID: "s"}, Trace: "t"}, ""},
		{plugin.TurnRequest{TurnID: "t", SessionID: "s", Scope: plugin.TurnScope{TurnID: "u"}}, plugin.OtherScopeTurn},
		{plugin.TurnRequest{TurnID: "t", SessionID: "s", Scope: plugin.TurnScope{SessionID: "r"}}, plugin.OtherScope},
		{plugin.TurnRequest{TurnID: "t", SessionID: "s", Trace: "u"}, plugin.OtherTrace},
	} {
		err := c.request.Check()
		refused, _ := errors.AsType[*plugin.TurnRequestError](err)
		if (refused == nil) != (c.want == "") || refused != nil && refused.Code != c.want {
			t.Errorf("%+v: %v, want %q", c.request, err, c.want)
		}
	}
}

func TestTriggersAreSorted(t *testing.T) {
	s := open(t, with("p", func(r *plugin.Registrar) {
		for name := range strings.FieldsSeq("f b d a e c") {
			r.Triggers().Event(plugin.TriggerEvent{ResourceType: "box", Alias: "mail", Event: name})
		}
	}))
	var got []string
	for _, e := range s.Triggers() {
		got = append(got, e.Event)
	}
	if !slices.Equal(got, []string{"a", "b", "c", "d", "e", "f"}) {
		t.Errorf("%q", got)
	}
}

// lends is the host of a tool call with capabilities.
type lends struct {
	tool.Host
	caps plugin.Capabilities
}

func (l lends) Capabilities() plugin.Capabilities { return l.caps }

func TestForTool(t *testing.T) {
	if got := plugin.ForTool(tool.Invocation{}); got != (plugin.Capabilities{}) {
		t.Errorf("a tool without a host is given %+v", got)
	}
	got := plugin.ForTool(tool.Invocation{Host: lends{caps: everything()}})
	if got.Models == nil || got.Tasks == nil || got.Graph != nil {
		t.Errorf("a tool is given %+v", got)
	}
}
