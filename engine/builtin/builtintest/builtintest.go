// Package builtintest runs a daemon with a store and without a wire, for the tests of plugins that ship inside.
package builtintest

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"sync"
	"testing"

	"lashd/engine"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Daemon is a running engine. It stops with its test.
type Daemon struct {
	*engine.Engine
	Stop func() // may be called twice
}

// Start runs an engine on the store in dir. The model has a context of window tokens; 0: not known. Tools need no approval.
func Start(t testing.TB, dir string, window int64, model provider.Provider, plugins ...plugin.Factory) *Daemon {
	t.Helper()
	return StartWith(t, standard.Factory{}, dir, window, model, plugins...)
}

// StartWith is Start with a protocol plugin that is not the standard one.
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
	d := &Daemon{Engine: engine.New(engine.Config{
		Store: store, Plugins: host, Log: log, StateDir: dir,
		Models:   []engine.Model{{Name: "test", Spec: protocol.ModelSpec{Provider: "test", ID: "m", ContextWindow: window}, Provider: model}},
		Defaults: protocol.Config{Driver: driver.ID(), Budget: protocol.Budget{Iterations: 20}, Approval: protocol.ApprovalConfig{Mode: protocol.ApproveAllow}},
	})}
	d.Stop = run(t, store, d.Engine)
	t.Cleanup(d.Stop)
	return d
}

// run runs both; stop ends the engine first, and then what it writes to.
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

func check(t testing.TB, err error) {
	if err != nil {
		t.Error(err)
	}
}

// Session is a new session in a directory of the test, with options for plugins.
func (d *Daemon) Session(t testing.TB, options protocol.PluginOptions) protocol.SessionID {
	t.Helper()
	return Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Options: options}))(t).SessionID
}

// Turn runs a turn to its end.
func (d *Daemon) Turn(t testing.TB, id protocol.SessionID, input string) *protocol.TurnReport {
	t.Helper()
	began := Must(d.Turns.Start(t.Context(), &protocol.TurnStartParams{
		SessionID: id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: input}},
	}))(t)
	return Must(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: began.TurnID}))(t)
}

// Result is the output of the newest call in the history of a session.
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
		t.Fatal("nothing was called")
	}
	return newest.Output
}

// Must gives a function that fails its test if there is an error, and otherwise gives the value.
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Calling is a model that answers a message with the given calls, one after the other, and then with a text. It begins
// anew with each message.
func Calling(calls ...scripted.Call) provider.Provider {
	var replies []scripted.Reply
	for _, c := range calls {
		replies = append(replies, scripted.Reply{ToolCalls: []scripted.Call{c}})
	}
	replies = append(replies, scripted.Reply{Text: "done"})
	return scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: replies}})
}

// Recorder is a model that keeps what it was asked. It serves one session at a time.
type Recorder struct {
	provider.Provider
	Asked []Request
}

// Request is what a model was asked.
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

// Last is what the model was asked last.
func (r *Recorder) Last(t testing.TB) Request {
	t.Helper()
	if len(r.Asked) == 0 {
		t.Fatal("the model was not asked")
	}
	return r.Asked[len(r.Asked)-1]
}
