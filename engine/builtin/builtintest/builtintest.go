// Package builtintest runs an engine with a real store, but without a connection, for the
// tests of built-in plugins.
package builtintest

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"lashd/engine"
	"lashd/engine/driver/standard"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/sandbox"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Daemon is a running engine. It stops at the end of its test.
type Daemon struct {
	*engine.Engine
	// Stop stops the engine and closes the store. It may be called again.
	Stop func()
	// Store is the store of the engine.
	Store *persistence.Store
}

// Start runs an engine on the store in dir. window is the size of the model's context in
// tokens; 0 means unknown. Tools need no approval, and commands run outside a sandbox.
func Start(t testing.TB, dir string, window int64, model provider.Provider, plugins ...plugin.Factory) *Daemon {
	t.Helper()
	return StartWith(t, standard.Factory{}, dir, window, model, plugins...)
}

// StartWith is Start with another driver.
func StartWith(t testing.TB, driver plugin.Factory, dir string, window int64, model provider.Provider, plugins ...plugin.Factory) *Daemon {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := persistence.Open(context.Background(), persistence.Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	host, err := plugin.NewHost([]plugin.Factory{driver}, plugins)
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{Store: store, Engine: engine.New(engine.Config{
		Store: store, Plugins: host, Log: log, StateDir: dir, Sandbox: sandbox.Places{State: dir, Scratch: filepath.Join(dir, "sandbox")},
		Models:   models.Fixed{{Name: "test", Spec: protocol.ModelSpec{Provider: "test", ID: "m", ContextWindow: window}, Provider: model}},
		Defaults: protocol.Config{Driver: driver.ID(), Budget: protocol.Budget{Iterations: 20}, Approval: protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: protocol.SandboxFullAccess}},
	})}
	d.Stop = run(t, store, d.Engine)
	t.Cleanup(d.Stop)
	return d
}

// run starts the store and the engine. stop ends the engine first, because it writes to the
// store until it ends.
func run(t testing.TB, store *persistence.Store, e *engine.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	writing, stopWriting := context.WithCancel(context.Background())
	var engineRun, storeRun sync.WaitGroup
	storeRun.Go(func() { check(t, store.Run(writing)) })
	engineRun.Go(func() { check(t, e.Run(ctx)) })
	return sync.OnceFunc(func() {
		cancel()
		engineRun.Wait()
		stopWriting()
		storeRun.Wait()
		check(t, store.Close())
	})
}

// check reports an error of a background goroutine.
func check(t testing.TB, err error) {
	if err != nil {
		t.Error(err)
	}
}

// Session creates a session in a temporary directory, with options for plugins.
func (d *Daemon) Session(t testing.TB, options protocol.PluginOptions) protocol.SessionID {
	t.Helper()
	return Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Options: options}))(t).SessionID
}

// Turn runs a turn and returns its report.
func (d *Daemon) Turn(t testing.TB, id protocol.SessionID, input string) *protocol.TurnReport {
	t.Helper()
	began := Must(d.Turns.Start(t.Context(), &protocol.TurnStartParams{
		SessionID: id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: input}},
	}))(t)
	return Must(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: began.TurnID}))(t)
}

// Result returns the output of the newest tool call in the history of a session.
func (d *Daemon) Result(t testing.TB, id protocol.SessionID) protocol.ToolOutput {
	t.Helper()
	var newest *protocol.ToolResult
	for _, n := range Must(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id}))(t).Data {
		if n.Message == nil {
			continue
		}
		for _, p := range n.Message.Parts {
			newest = cmp.Or(p.Result, newest)
		}
	}
	if newest == nil {
		t.Fatal("no tool was called")
	}
	return newest.Output
}

// Must returns a function that returns v, or fails the test if there is an error.
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Calling returns a model that answers each message with the given calls, one per reply,
// and then with a text.
func Calling(calls ...scripted.Call) provider.Provider {
	var replies []scripted.Reply
	for _, c := range calls {
		replies = append(replies, scripted.Reply{ToolCalls: []scripted.Call{c}})
	}
	replies = append(replies, scripted.Reply{Text: "done"})
	return scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: replies}})
}

// Recorder is a model that records its requests. It serves one session at a time.
type Recorder struct {
	provider.Provider
	// Asked has the requests, oldest first. Tests may reset it between turns.
	Asked []Request
}

// Request is a recorded request.
type Request struct {
	System   string
	Messages []protocol.Message
	Tools    []protocol.ToolManifest
}

// Stream implements provider.Provider.
func (r *Recorder) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	asked := Request{System: req.System, Tools: req.Tools}
	for _, m := range req.Messages {
		asked.Messages = append(asked.Messages, *m)
	}
	r.Asked = append(r.Asked, asked)
	return r.Provider.Stream(ctx, req)
}

// Last returns the newest request.
func (r *Recorder) Last(t testing.TB) Request {
	t.Helper()
	if len(r.Asked) == 0 {
		t.Fatal("the model got no request")
	}
	return r.Asked[len(r.Asked)-1]
}
