package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"iter"
	"log/slog"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"lashd/engine"
	"lashd/engine/driver/standard"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir, os.Getenv(victimPoint)) // until it is killed
		return
	}
	if os.Getenv("LASHD_LONG") == "" {
		flag.Set("rapid.checks", "25") // of a registered flag, with a number
	}
	goleak.VerifyTestMain(m)
}

// daemon is a store and an engine as the daemon runs them, without the wire.
type daemon struct {
	*engine.Engine
	store *persistence.Store
	setup setup
	halt  func() // stops the engine, not the store: what was asked of it may still get its answer
	stop  func()
}

// setup says what a test daemon is made of; zero fields get defaults.
type setup struct {
	dir     string
	cwd     string // the workspace of all its sessions; empty: each has one of its own
	model   provider.Provider
	tools   []tool.Provider
	driver  plugin.Factory
	plugins []plugin.Factory
	config  func(*engine.Config)
}

// open makes store and engine without running them.
func (s setup) open(dir string) (*daemon, error) {
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("LASHD_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	store, err := persistence.Open(context.Background(), persistence.Config{Dir: dir, Log: log})
	if err != nil {
		return nil, err
	}
	if s.driver == nil {
		s.driver = standard.Factory{}
	}
	host, err := plugin.NewHost([]plugin.Factory{s.driver}, append([]plugin.Factory{toolsFactory(s.tools)}, s.plugins...))
	if err != nil {
		return nil, err
	}
	cfg := engine.Config{
		Store: store, Plugins: host, Log: log, StateDir: dir,
		Models:   models.Fixed{{Name: "test", Spec: protocol.ModelSpec{Provider: "test", ID: "m"}, Provider: s.model}},
		Defaults: protocol.Config{Driver: s.driver.ID(), Budget: protocol.Budget{Iterations: 20}, Approval: protocol.ApprovalConfig{Mode: protocol.ApproveAllow}},
	}
	if s.config != nil {
		s.config(&cfg)
	}
	return &daemon{Engine: engine.New(cfg), store: store, setup: s}, nil
}

func start(t testing.TB, s setup) *daemon {
	t.Helper()
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	d, err := s.open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(t.Context()))
	var storeRun, engineRun sync.WaitGroup
	storeRun.Go(func() { d.store.Run(storeCtx) })
	engineRun.Go(func() {
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	d.halt = func() {
		cancel()
		engineRun.Wait()
	}
	d.stop = sync.OnceFunc(func() {
		d.halt()
		stopStore()
		storeRun.Wait()
		if err := d.store.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
	return d
}

// restart stops the daemon where its turns can be resumed, and starts it again with what change makes of its setup.
func (d *daemon) restart(t testing.TB, change func(*setup)) *daemon {
	t.Helper()
	s := d.setup
	s.dir = d.store.Dir()
	d.stop()
	if change != nil {
		change(&s)
	}
	return start(t, s)
}

type toolsFactory []tool.Provider

func (toolsFactory) ID() string                                         { return "test-tools" }
func (f toolsFactory) Build(plugin.BuildContext) (plugin.Plugin, error) { return f, nil }
func (f toolsFactory) Register(r *plugin.Registrar) error {
	for _, p := range f {
		r.Tools().Add(p)
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

func (f toolFunc) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	return f.run(ctx, call)
}

// says is a tool that answers at once.
func says(name, out string) toolFunc {
	return toolFunc{name: name, run: func(context.Context, tool.Invocation) (tool.Result, error) {
		return tool.Result{Output: protocol.Succeed(out)}, nil
	}}
}

// replies is a model that answers the first message with these replies, and every further message with "ok".
func replies(all ...scripted.Reply) provider.Provider {
	return scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Replies: all}},
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok", Usage: &protocol.Usage{Input: 1, Output: 1}}}},
	})
}

// calls is a reply that calls tools without arguments, with the ids c1, c2...
func calls(names ...string) scripted.Reply {
	r := scripted.Reply{Usage: &protocol.Usage{Input: 10, Output: 5}}
	for i, name := range names {
		r.ToolCalls = append(r.ToolCalls, scripted.Call{ID: protocol.CallID("c" + string(rune('1'+i))), Name: name})
	}
	return r
}

// modelFunc is a model made of a function.
type modelFunc func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool)

func (f modelFunc) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) { f(ctx, req, yield) }
}

func (d *daemon) session(t testing.TB) protocol.SessionID {
	t.Helper()
	res, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: cmp.Or(d.setup.cwd, t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	return res.SessionID
}

func text(s string) []protocol.InputPart {
	return []protocol.InputPart{{Type: protocol.InputText, Text: s}}
}

func (d *daemon) begin(t testing.TB, id protocol.SessionID, input string) *protocol.TurnStartResult {
	t.Helper()
	res, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: text(input)})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// turn runs a turn to its end.
func (d *daemon) turn(t testing.TB, id protocol.SessionID, input string) *protocol.TurnReport {
	t.Helper()
	return d.wait(t, d.begin(t, id, input).TurnID)
}

func (d *daemon) wait(t testing.TB, id protocol.TurnID) *protocol.TurnReport {
	t.Helper()
	report, err := d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: id})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (d *daemon) interrupt(t testing.TB, id protocol.TurnID) protocol.InterruptStatus {
	t.Helper()
	res, err := d.Turns.Interrupt(t.Context(), "cli_a", &protocol.TurnInterruptParams{TurnID: id, Reason: "enough"})
	if err != nil {
		t.Fatal(err)
	}
	return res.Status
}

// must fails the test on an error of a call whose result does not matter.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
