package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// sluggish is a plugin that ignores its context and blocks where the test says.
type sluggish struct {
	revision               atomic.Uint64
	captures, gets, closes atomic.Pointer[chan struct{}] // nil: it returns at once
}

func (*sluggish) ID() string                                         { return "sluggish" }
func (s *sluggish) Build(plugin.BuildContext) (plugin.Plugin, error) { return s, nil }
func (*sluggish) Register(*plugin.Registrar) error                   { return nil }
func (s *sluggish) Revision() uint64                                 { return s.revision.Add(1) }

func (s *sluggish) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	waits(&s.captures)
	return json.RawMessage(`1`), nil
}

func (s *sluggish) Restore(context.Context, plugin.Meta, *plugin.ArtifactReader) error {
	waits(&s.gets)
	return nil
}

func (s *sluggish) Close() error {
	waits(&s.closes)
	return nil
}

func waits(at *atomic.Pointer[chan struct{}]) {
	if c := at.Load(); c != nil {
		<-*c
	}
}

// patiently returns a context with a limit that the test must not reach.
func patiently(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// slow fails the test unless err reports that plugins took too long.
func slow(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, workgroup.ErrSlowPlugin) {
		t.Errorf("%s: %v, want %v", what, err, workgroup.ErrSlowPlugin)
	}
}

func TestPluginTimeouts(t *testing.T) {
	for name, f := range map[string]func(*testing.T, *sluggish, chan struct{}){
		"plugin/SN-04 a plugin that never returns its state is abandoned":                             neverCaptured,
		"plugin/SN-08 plugin/SN-10 a plugin that never returns from a restore is abandoned":           neverRestored,
		"plugin/HC-04 a plugin that never closes holds neither its session nor the end of the daemon": neverClosed,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := make(chan struct{})
				defer close(hang)
				f(t, &sluggish{}, hang)
			})
		})
	}
	t.Run("plugin/PR-01 plugin/PR-04 a protocol that never answers a client is abandoned", neverAnswered)
}

func neverCaptured(t *testing.T, s *sluggish, hang chan struct{}) {
	d := start(t, with(s))
	id := d.session(t)
	s.captures.Store(&hang)
	turn := d.begin(t, id, "hi")
	report, err := d.Turns.Wait(patiently(t), &protocol.TurnWaitParams{TurnID: turn.TurnID})
	if err != nil || report.State != protocol.TurnCompleted || len(report.Issues) != 1 || report.Issues[0].Code != "plugin_snapshot" {
		t.Errorf("the turn: %+v %v", report, err)
	}
	_, err = d.Snapshots.Create(patiently(t), &protocol.SnapshotMutationParams{SessionID: id, Name: "x"})
	slow(t, "a snapshot", err)
	if _, err := d.History.Fork(patiently(t), &protocol.SessionForkParams{SessionID: id}); err != nil {
		t.Errorf("a fork: %v", err)
	}
}

func neverRestored(t *testing.T, s *sluggish, hang chan struct{}) {
	d := start(t, with(s))
	id := d.session(t)
	d.turn(t, id, "hi")
	must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "x"}))
	s.gets.Store(&hang)
	_, err := d.Sessions.New(patiently(t), &protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartSnapshot, SessionID: id, Snapshot: "x"}})
	slow(t, "a session that begins with a snapshot", err)
	_, err = d.Snapshots.Restore(patiently(t), &protocol.SnapshotMutationParams{SessionID: id, Name: "x"})
	slow(t, "going back to a snapshot", err)
	s.gets.Store(nil)
	if _, err := d.Snapshots.Restore(patiently(t), &protocol.SnapshotMutationParams{SessionID: id, Name: "x"}); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func neverClosed(t *testing.T, s *sluggish, hang chan struct{}) {
	d := start(t, with(s))
	id := d.session(t)
	d.turn(t, id, "hi")
	s.closes.Store(&hang)
	if _, err := d.Sessions.Close(patiently(t), &protocol.SessionMutationParams{SessionID: id}); err != nil {
		t.Error(err)
	}
	if _, err := d.Tools.List(patiently(t), &protocol.SessionParams{SessionID: id}); err != nil {
		t.Errorf("the session is not opened again: %v", err)
	}
	began := time.Now()
	d.stop()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the daemon took %v to stop", took)
	}
}

func neverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		s := with()
		s.driver = scheme{callbacks: func(plugin.BuildContext) plugin.ProtocolSession {
			return plugin.ProtocolSession{
				ApplyExtension: func(context.Context, json.RawMessage) error { <-hang; return nil },
				ValidateTurn:   func(context.Context, *protocol.TurnOptions) error { <-hang; return nil },
			}
		}}
		d := start(t, s)
		id := d.session(t)
		_, err := d.Sessions.ApplyExtension(patiently(t), &protocol.SessionExtensionParams{SessionID: id, Extension: json.RawMessage(`{}`)})
		slow(t, "an extension", err)
		options := turnOptions(`{}`)
		_, err = d.Turns.Start(patiently(t), &protocol.TurnStartParams{SessionID: id, Input: text("hi"), TurnOptions: &options})
		slow(t, "turn options", err)
		if report := d.turn(t, id, "go"); report.State != protocol.TurnCompleted {
			t.Errorf("the next turn: %+v", report)
		}
	})
}

func TestCompactAgain(t *testing.T) {
	sums := func(f func()) hooked {
		return compactor("c", 1, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) { f(); return summary("sum"), nil })
	}
	t.Run("plugin/HK-30 runtime/S11 history can be compacted again after a rewind past a compaction", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: plugins(sums(func() {}))})
		id := d.session(t)
		d.turn(t, id, "hi")
		leaf := d.graph(t, id).Head.Leaf
		for range 2 {
			must[*protocol.SessionCompactResult](t)(d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}))
			must[*protocol.SessionRewindResult](t)(d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToNode: leaf}))
		}
	})
	t.Run("plugin/HK-30 runtime/S11 messages appended during a compaction stay visible to the model", func(t *testing.T) {
		var d *daemon
		var id protocol.SessionID
		model := &remembering{Provider: replies(scripted.Reply{Text: "hello"})}
		d = start(t, setup{model: model, plugins: plugins(sums(func() {
			must[*protocol.GraphAppendResult](t)(d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: summary("by the way")}))
		}))})
		id = d.session(t)
		d.turn(t, id, "hi")
		if _, err := d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}); !errors.Is(err, engine.ErrHistoryMoved) {
			t.Errorf("compacted with %v", err)
		}
		d.turn(t, id, "and now?")
		if got := texts(model.asked[len(model.asked)-1]); !slices.Contains(got, "by the way") {
			t.Errorf("the model saw %q", got)
		}
	})
	t.Run("plugin/HK-30 runtime/S11 an automatic compaction does not block the session for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			defer close(hang)
			d := start(t, setup{model: replies(), plugins: plugins(sums(func() { <-hang }), afterTurn("w", plugin.Compact()))})
			id := d.session(t)
			o := d.observe(t, id)
			d.turn(t, id, "hi")
			next := d.begin(t, id, "and now?")
			if report, err := d.Turns.Wait(patiently(t), &protocol.TurnWaitParams{TurnID: next.TurnID}); err != nil || report.State != protocol.TurnCompleted {
				t.Errorf("the next turn: %+v %v", report, err)
			}
			if e := o.typed(protocol.EventPluginStatus); e.Name != "compaction_failed" {
				t.Errorf("told %+v", e)
			}
		})
	})
}

func TestHangingHooks(t *testing.T) {
	hooks := map[string]func(*plugin.Registrar, func()){
		"Turn().Before": func(r *plugin.Registrar, hang func()) {
			r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) { hang(); return nil, nil })
		},
		"Prompt().Hook": func(r *plugin.Registrar, hang func()) {
			r.Prompt().Hook(func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) { hang(); return nil, nil })
		},
		"ToolCalls().Before": func(r *plugin.Registrar, hang func()) {
			r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) { hang(); return nil, nil })
		},
		"ToolResults().After": func(r *plugin.Registrar, hang func()) {
			r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) { hang(); return nil, nil })
		},
		"Checkpoint": func(r *plugin.Registrar, hang func()) {
			r.Turn().Checkpoint(func(context.Context, *plugin.CheckpointContext) ([]plugin.Directive, error) { hang(); return nil, nil })
		},
		"Stream": func(r *plugin.Registrar, hang func()) {
			r.Output().Stream(func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) { hang(); return c, nil })
		},
	}
	for name, register := range hooks {
		t.Run("plugin/HK-28 a turn whose hook "+name+" does not return can be stopped", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait := make(chan struct{})
				defer close(wait)
				d := start(t, setup{
					model: replies(calls("look"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("look", "x")},
					plugins: plugins(hooked{"deaf", func(r *plugin.Registrar) { register(r, func() { <-wait }) }}),
				})
				turn := d.begin(t, d.session(t), "go").TurnID
				synctest.Wait()
				d.interrupt(t, turn)
				if report, err := d.Turns.Wait(patiently(t), &protocol.TurnWaitParams{TurnID: turn}); err != nil || report.State != protocol.TurnCancelled {
					t.Errorf("%+v %v", report, err)
				}
			})
		})
	}
	for name, register := range hooks {
		t.Run("plugin/HK-01 a turn whose hook "+name+" does not return continues without it", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait := make(chan struct{})
				defer close(wait)
				d := start(t, setup{
					model: replies(calls("look"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("look", "x")},
					plugins: plugins(hooked{"deaf", func(r *plugin.Registrar) { register(r, func() { <-wait }) }}),
				})
				began := time.Now()
				turn := d.begin(t, d.session(t), "go").TurnID
				report, err := d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: turn})
				if took := time.Since(began); err != nil || report.Outcome == nil || took < 30*time.Minute || took > 31*time.Minute {
					t.Errorf("after %v: %+v %v", took, report, err)
				}
			})
		})
	}
	t.Run("plugin/HK-28 an afterTurn hook that does not return does not block the shutdown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			wait := make(chan struct{})
			defer close(wait)
			d := start(t, setup{model: replies(), plugins: plugins(hooked{"deaf", func(r *plugin.Registrar) {
				r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) { <-wait; return nil, nil })
			}})})
			d.begin(t, d.session(t), "go")
			synctest.Wait()
			began := time.Now()
			d.stop()
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	})
}
