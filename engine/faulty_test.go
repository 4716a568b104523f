package engine_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// faulty is a plugin, and a protocol, with a contribution of every kind. On request it panics, or does not return
// before it is released, whatever its context says.
type faulty struct {
	where  atomic.Pointer[string] // nil: nowhere
	panics bool
	free   chan struct{}
	away   atomic.Int64 // calls that have not returned
	state  atomic.Uint64
}

// at is called in each contribution.
func (f *faulty) at(slot string) {
	if where := f.where.Load(); where == nil || *where != slot {
		return
	}
	if f.panics {
		panic("faulty")
	}
	f.away.Add(1)
	defer f.away.Add(-1)
	<-f.free
	f.state.Add(1) // a late answer has left its traces in memory
}

func (*faulty) ID() string { return "faulty" }

func (f *faulty) Build(plugin.BuildContext) (plugin.Plugin, error) {
	f.at("build")
	return &fault{faulty: f}, nil
}

func (f *faulty) Shutdown(context.Context) error { f.at("shutdown"); return nil }

// fault is faulty in one session.
type fault struct {
	*faulty
	mu   sync.Mutex
	done int // what it keeps: how many commands it has run
}

func (f *fault) Ready(protocol.SessionID, *plugin.Host) error { f.at("ready"); return nil }
func (f *fault) Close() error                                 { f.at("close"); return nil }

func (f *fault) Revision() uint64 {
	f.at("revision")
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.done) + 1
}

func (f *fault) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	f.at("snapshot")
	f.mu.Lock()
	defer f.mu.Unlock()
	return json.Marshal(f.done)
}

func (f *fault) Restore(_ context.Context, m plugin.Meta, _ *plugin.ArtifactReader) error {
	f.at("restore")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = 0
	if m.State == nil {
		return nil
	}
	return json.Unmarshal(m.State, &f.done)
}

func (f *fault) Register(r *plugin.Registrar) error {
	f.at("register")
	r.Tools().Add(faultyTools{f})
	r.Catalog().Contribute(func(context.Context, *plugin.CatalogContext) ([]string, error) { f.at("tool_catalog"); return nil, nil })
	r.Operations().Query(named("faulty.query", ""), func(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
		f.at("query")
		f.mu.Lock()
		defer f.mu.Unlock()
		return json.Marshal(f.done)
	})
	work := func(slot string) plugin.CommandFunc {
		return func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
			f.mu.Lock()
			f.done++ // before the work is done: half of it must not be kept
			f.mu.Unlock()
			f.at(slot)
			return &plugin.OperationResult{Events: []protocol.PluginNode{{Type: "e", Body: json.RawMessage(`1`)}}}, nil
		}
	}
	r.Operations().Command(named("faulty.command", ""), work("command"))
	r.Operations().Task(named("faulty.task", ""), work("task"))
	f.hooks(r)
	f.looks(r)
	return nil
}

func (f *fault) hooks(r *plugin.Registrar) {
	r.Prompt().Hook(func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) { f.at("prompt"); return nil, nil })
	r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) {
		f.at("before_turn")
		return nil, nil
	})
	r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) {
		f.at("before_tool_call")
		return nil, nil
	})
	r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) {
		f.at("after_tool_call")
		return nil, nil
	})
	r.ToolResults().Projector(func(_ context.Context, c *plugin.ToolResultContext) (protocol.ToolOutput, error) {
		f.at("tool_result_projector")
		return c.Output, nil
	})
	r.Turn().Checkpoint(func(context.Context, *plugin.CheckpointContext) ([]plugin.Directive, error) {
		f.at("checkpoint")
		return nil, nil
	})
	r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) {
		f.at("after_turn")
		return nil, nil
	})
	r.Context().Transform(0, func(_ context.Context, _ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
		f.at("context_transform")
		return pc, nil
	})
	r.Context().Compactor(0, func(context.Context, *plugin.CompactRequest) ([]protocol.NodeBody, error) {
		f.at("compactor")
		return summary("sum"), nil
	})
}

func (f *fault) looks(r *plugin.Registrar) {
	r.Output().Stream(func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) {
		f.at("assistant_stream")
		return c, nil
	})
	r.Output().Response(func(_ context.Context, c plugin.Response) (plugin.Response, error) {
		f.at("assistant_response")
		return c, nil
	})
	r.Protocol().Prose(func(_ context.Context, text string) (string, error) { f.at("prose"); return text, nil })
	r.Output().Finished(func(context.Context, plugin.StreamEnd) error { f.at("assistant_stream_finished"); return nil })
	r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error { f.at(string(e.Kind)); return nil })
	r.Session().MutateConfig(func(_ context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
		f.at("config_mutator")
		return c.Config, nil
	})
}

// faultyTools are its tools, whose contracts have to be asked for.
type faultyTools struct{ *fault }

func (f faultyTools) Tools() []tool.Tool {
	f.at("tools")
	return []tool.Tool{{Manifest: protocol.ToolManifest{Name: "look"}}}
}

func (f faultyTools) Contract(string) (protocol.ToolContract, error) {
	f.at("contract")
	return protocol.ToolContract{TimeoutMs: 60_000, Replay: protocol.ReplaySafe}, nil
}

func (f faultyTools) Prepare(_ context.Context, call tool.Invocation) (tool.Invocation, error) {
	f.at("prepare")
	return call, nil
}

func (f faultyTools) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	f.at("tool")
	return tool.Result{Output: protocol.Succeed("seen")}, nil
}

// protocol is a protocol plugin of which each callback is faulty.
func (f *faulty) protocol() plugin.Factory {
	callbacks := func(plugin.BuildContext) plugin.ProtocolSession {
		return plugin.ProtocolSession{
			Initialize:     func(context.Context, protocol.SessionID) error { f.at("initialize"); return nil },
			Restore:        func(context.Context, *plugin.View) error { f.at("restored"); return nil },
			AppendNodes:    func(context.Context, []protocol.NodeBody) error { f.at("append"); return nil },
			ApplyExtension: func(context.Context, json.RawMessage) error { f.at("extension"); return nil },
			ValidateTurn:   func(context.Context, *protocol.TurnOptions) error { f.at("validate"); return nil },
			Materialize: func(context.Context, *plugin.Materialization) (*plugin.Materialized, error) {
				f.at("materialize")
				return nil, nil
			},
			BeforeModel: func(context.Context, *plugin.BeforeModel) (*protocol.FrameSwitch, error) {
				f.at("before_llm_call")
				return nil, nil
			},
		}
	}
	return scheme{driver: faultyDriver{f: f}, callbacks: callbacks, executor: func() plugin.CodeExecutor { return &faultyCells{f: f} }}
}

type faultyDriver struct {
	coding
	f *faulty
}

func (d faultyDriver) Reply(v turn.View, reply provider.Reply) []turn.Action {
	d.f.at("driver")
	return d.coding.Reply(v, reply)
}

func (d faultyDriver) Visible(prose string) string { d.f.at("visible"); return prose }

func (d faultyDriver) Preamble(plugin.PreambleInput) string { d.f.at("preamble"); return "" }

// faultyCells is a code executor that keeps how many cells it has run.
type faultyCells struct {
	f  *faulty
	mu sync.Mutex
	n  int
	ok int // stored
}

func (c *faultyCells) Execute(context.Context, *plugin.CodeCall, plugin.CellHost) (turn.CellReply, error) {
	c.f.at("code_executor")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return turn.CellReply{Printed: "ran"}, nil
}

func (c *faultyCells) Dirty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n != c.ok
}

func (c *faultyCells) Snapshot(context.Context) (plugin.ExecutionChange, error) {
	c.f.at("code_executor_snapshot")
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := json.Marshal(c.n)
	return plugin.ExecutionChange{Changed: map[string][]byte{"n": n}}, err
}

func (c *faultyCells) Stored() {
	c.f.at("code_executor_stored")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ok = c.n
}

func (c *faultyCells) Restore(_ context.Context, values map[string][]byte) error {
	c.f.at("code_executor_restore")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = len(values["n"])
	c.ok = c.n
	return nil
}

// looking is a model that says what begins with "run ", and else calls the tool once.
func looking() provider.Provider {
	return modelFunc(func(_ context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		last := req.Messages[len(req.Messages)-1].Parts[0]
		chunk := provider.Chunk{Text: "done"}
		switch {
		case last.Kind == protocol.PartText && len(last.Text) > 4 && last.Text[:4] == "run ":
			chunk = provider.Chunk{Text: last.Text}
		case last.Kind == protocol.PartText && last.Text == "look":
			chunk = provider.Chunk{Part: &protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c1", Name: "look", Args: json.RawMessage(`{}`)}}}
		}
		_ = yield(chunk, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
	})
}
