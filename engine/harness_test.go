package engine_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"

	"lashd/engine"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// daemon is a store and an engine as the daemon runs them, without the wire.
type daemon struct {
	*engine.Engine
	store *persistence.Store
	stop  func()
}

// setup says what a test daemon is made of; zero fields get defaults.
type setup struct {
	dir    string
	model  provider.Provider
	tools  []tool.Provider
	config func(*engine.Config)
}

func start(t testing.TB, s setup) *daemon {
	t.Helper()
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	log := slog.New(slog.DiscardHandler)
	store, err := persistence.Open(t.Context(), persistence.Config{Dir: s.dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	host, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{toolsFactory(s.tools)})
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{
		Store: store, Host: host, Log: log, StateDir: s.dir,
		Models:   []engine.Model{{Name: "test", Spec: protocol.ModelSpec{Provider: "test", ID: "m"}, Provider: s.model}},
		Defaults: protocol.Config{Driver: "standard", Budget: protocol.Budget{Iterations: 20}, Approval: protocol.ApprovalConfig{Mode: protocol.ApproveAllow}},
	}
	if s.config != nil {
		s.config(&cfg)
	}
	eng := engine.New(cfg)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(t.Context()))
	var storeRun, engineRun sync.WaitGroup
	storeRun.Go(func() { store.Run(storeCtx) })
	engineRun.Go(func() {
		if err := eng.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	d := &daemon{Engine: eng, store: store}
	d.stop = sync.OnceFunc(func() {
		cancel()
		engineRun.Wait()
		stopStore()
		storeRun.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
	return d
}

type toolsFactory []tool.Provider

func (toolsFactory) ID() string                                           { return "test-tools" }
func (f toolsFactory) Build(plugin.BuildContext) (plugin.Plugin, error) { return f, nil }
func (f toolsFactory) Register(r *plugin.Registrar) error {
	for _, p := range f {
		r.Tools(p)
	}
	return nil
}

// toolFunc is a tool made of a function.
type toolFunc struct {
	name     string
	contract protocol.ToolContract
	kind     protocol.ToolKind
	schema   string
	run      func(context.Context, tool.Invocation) (tool.Result, error)
}

func (f toolFunc) Tools() []tool.Tool {
	return []tool.Tool{{Contract: f.contract, Manifest: protocol.ToolManifest{
		Name: f.name, Description: "test tool", Kind: f.kind, Input: json.RawMessage(f.schema),
	}}}
}

func (f toolFunc) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) { return f.run(ctx, call) }

func script(t testing.TB, text string) provider.Provider {
	t.Helper()
	s, err := scripted.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s)
}

func (d *daemon) session(t testing.TB) protocol.SessionID {
	t.Helper()
	res, err := d.NewSession(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return res.SessionID
}

func text(s string) []protocol.InputPart {
	return []protocol.InputPart{{Type: protocol.InputText, Text: s}}
}

// turn runs a turn to its end.
func (d *daemon) turn(t testing.TB, id protocol.SessionID, input string) *protocol.TurnReport {
	t.Helper()
	res, err := d.StartTurn(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: text(input)})
	if err != nil {
		t.Fatal(err)
	}
	return d.wait(t, res.TurnID)
}

func (d *daemon) wait(t testing.TB, id protocol.TurnID) *protocol.TurnReport {
	t.Helper()
	report, err := d.WaitTurn(t.Context(), &protocol.TurnWaitParams{TurnID: id})
	if err != nil {
		t.Fatal(err)
	}
	return report
}
