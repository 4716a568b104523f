package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"lashd/engine"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// clumsy is a plugin that panics where the test says.
type clumsy struct {
	standard.Driver
	at string
}

func (c clumsy) ID() string { return "clumsy-" + c.at }

func (c clumsy) Build(plugin.BuildContext) (plugin.Plugin, error) {
	c.here("build")
	return c, nil
}

func (c clumsy) Register(r *plugin.Registrar) error {
	switch c.at {
	case "preamble", "reply", "results", "visible":
		r.Protocol().Driver(c)
	case "projector":
		r.ToolResults().Projector(func(context.Context, *plugin.ToolResultContext) (protocol.ToolOutput, error) { panic("clumsy") })
	}
	return nil
}

func (c clumsy) Preamble(in plugin.PreambleInput) string {
	c.here("preamble")
	return c.Driver.Preamble(in)
}

func (c clumsy) Reply(v turn.View, reply provider.Reply) []turn.Action {
	c.here("reply")
	return c.Driver.Reply(v, reply)
}

func (c clumsy) Results(v turn.View, results []turn.ToolReply) []turn.Action {
	c.here("results")
	return c.Driver.Results(v, results)
}

func (c clumsy) Visible(prose string) string {
	c.here("visible")
	return prose
}

func (c clumsy) here(at string) {
	if c.at == at {
		panic("clumsy")
	}
}

func TestPanics(t *testing.T) {
	crash := toolFunc{name: "crash", run: func(context.Context, tool.Invocation) (tool.Result, error) { panic("clumsy") }}
	script := replies(calls("crash", "look"), scripted.Reply{Text: "done"})
	tools := []tool.Provider{crash, says("look", "fine")}
	t.Run("runtime/T22 a tool that panics fails its own call", func(t *testing.T) {
		d := start(t, setup{model: script, tools: tools})
		report := d.turn(t, d.session(t), "go")
		first, second := report.ToolCalls[0].Output, report.ToolCalls[1].Output
		if first.Failure == nil || first.Failure.Code != "tool_panicked" || second.Status != protocol.OutputSuccess || report.State != protocol.TurnCompleted {
			t.Errorf("state %s, outputs %+v and %+v", report.State, first, second)
		}
	})
	t.Run("runtime/T22 a provider that panics fails the call, and its output so far is kept", func(t *testing.T) {
		d := start(t, setup{model: modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			yield(provider.Chunk{Text: "so far"}, nil)
			panic("clumsy")
		})})
		report := d.turn(t, d.session(t), "go")
		if report.Outcome.Kind != protocol.OutcomeProviderError || report.Issues[0].Code != "provider_panic" || report.Output.Safe != "so far" {
			t.Errorf("outcome %+v, issues %+v, output %+v", report.Outcome, report.Issues, report.Output)
		}
	})
	t.Run("runtime/T22 plugin/HK-24 the model sees the panic of a result projector, and the record keeps the output", func(t *testing.T) {
		d := start(t, setup{model: script, tools: tools, plugins: []plugin.Factory{clumsy{at: "projector"}}})
		id := d.session(t)
		report := d.turn(t, id, "go")
		if out := report.ToolCalls[1].Output; out.Status != protocol.OutputSuccess {
			t.Errorf("the record has %+v", out)
		}
		if seen := resultsOf(d.graph(t, id).Data); len(seen) != 2 || !strings.Contains(seen[1], "panicked") {
			t.Errorf("the model sees %q", seen)
		}
	})
	for _, at := range []string{"preamble", "reply", "results", "visible"} {
		t.Run("runtime/T22 a driver that panics in "+at+" fails the turn, and the session stays usable", func(t *testing.T) {
			d := start(t, setup{model: script, tools: tools, driver: clumsy{at: at}})
			id := d.session(t)
			report := d.turn(t, id, "go")
			if want := protocol.OutcomeRuntimeError; at != "visible" && report.Outcome.Kind != want {
				t.Errorf("outcome %+v, want %s", report.Outcome, want)
			}
			d = d.restart(t, func(s *setup) { s.config = driven(s.driver.ID()); s.driver = renamed{s.driver.ID()} })
			if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
				t.Errorf("the next turn, with a driver that works, ended as %s %+v", next.State, next.Issues)
			}
		})
	}
	t.Run("runtime/T22 a plugin that panics while it is built fails the turn", func(t *testing.T) {
		d := start(t, setup{model: script})
		id := d.session(t)
		d = d.restart(t, func(s *setup) { s.plugins = []plugin.Factory{clumsy{at: "build"}} })
		if _, err := d.grant(t, protocol.Authority{}); !errors.As(err, new(*plugin.PanicError)) {
			t.Errorf("a session is created: %v", err)
		}
		if report := d.turn(t, id, "go"); report.State != protocol.TurnFailed || report.Issues[0].Code != "panic" {
			t.Errorf("report %+v", report)
		}
		if _, err := d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}); err == nil {
			t.Error("tool/list answers although no plugin can be built")
		}
		if _, err := d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}); err != nil {
			t.Errorf("the session cannot be read: %v", err)
		}
	})
}

// TestStacksOfPanics looks for the function that panicked in the log, where plugin authors need it.
func TestStacksOfPanics(t *testing.T) {
	boom := func(r *plugin.Registrar, at string) {
		here := func(hook string) error {
			if at == hook {
				panic("clumsy")
			}
			return nil
		}
		r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) {
			return nil, here("before turn")
		})
		r.Turn().Checkpoint(func(context.Context, *plugin.CheckpointContext) ([]plugin.Directive, error) {
			return nil, here("checkpoint")
		})
		r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) { return nil, here("after turn") })
		r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) {
			return nil, here("before call")
		})
		r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) {
			return nil, here("after call")
		})
		r.Prompt().Hook(func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) { return nil, here("prompt") })
		r.Output().Stream(func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) { return c, here("stream") })
		r.Output().Response(func(_ context.Context, p plugin.Response) (plugin.Response, error) { return p, here("response") })
		r.Context().Transform(0, func(_ context.Context, _ *plugin.ContextView, p plugin.PreparedContext) (plugin.PreparedContext, error) {
			return p, here("transform")
		})
		r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error { return here(string(e.Kind)) })
		r.Operations().Query(protocol.OperationInfo{Name: "ask"}, func(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
			return json.RawMessage("1"), here("query")
		})
		r.Operations().Command(protocol.OperationInfo{Name: "do"}, func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
			return &plugin.OperationResult{}, here("command")
		})
	}
	for _, at := range []string{
		"before turn", "checkpoint", "after turn", "before call", "after call", "prompt", "stream", "response", "transform",
		"turnFinalized", "turnPersisted", "query", "command", "sessionRestored",
	} {
		t.Run("runtime/T22 "+at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &output{}
				d := start(t, setup{
					model: replies(calls("look"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("look", "fine")},
					plugins: []plugin.Factory{hooked{"boom", func(r *plugin.Registrar) { boom(r, at) }}},
					config:  func(c *engine.Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) },
				})
				id := d.session(t)
				d.turn(t, id, "go")
				_, _ = d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: "ask"})
				_, _ = d.Operations.Command(t.Context(), &protocol.OperationParams{SessionID: id, Name: "do"})
				synctest.Wait() // turnPersisted comes after the turn
				if got := log.String(); !strings.Contains(got, "TestStacksOfPanics.func1.") {
					t.Errorf("the log has no stack: %s", got)
				}
			})
		})
	}
}

// output collects writes from several goroutines.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// renamed is the standard driver under another name.
type renamed struct{ id string }

func (r renamed) ID() string { return r.id }
func (renamed) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	return standard.Factory{}.Build(ctx)
}

func driven(driver string) func(*engine.Config) {
	return func(c *engine.Config) { c.Defaults.Driver = driver }
}
