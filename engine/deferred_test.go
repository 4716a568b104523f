package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// deferring is a tool that answers later.
type deferring struct {
	toolFunc
	how       protocol.Deferral
	ran       notes
	cancelled notes
	keys      notes // that it took
}

// key is the newest key that it took.
func (d *deferring) key() protocol.CompletionKey {
	d.keys.mu.Lock()
	defer d.keys.mu.Unlock()
	return protocol.CompletionKey(d.keys.list[len(d.keys.list)-1])
}

func newDeferring(how protocol.Deferral) *deferring {
	d := &deferring{how: how}
	d.toolFunc = toolFunc{name: "work", contract: protocol.ToolContract{MayDefer: true}, run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
		d.ran.add("x")
		key, err := c.Host.CompletionKey(ctx, d.how)
		d.keys.add(string(key))
		return tool.Result{Pending: true}, err
	}}
	return d
}

func (d *deferring) CancelWork(_ context.Context, c tool.Invocation, key protocol.CompletionKey) error {
	d.cancelled.add(string(c.CallID))
	return nil
}

// complete completes a call.
func (d *daemon) complete(t *testing.T, key protocol.CompletionKey, text string) bool {
	t.Helper()
	return must[*protocol.ToolCompleteResult](t)(d.Tools.Complete(t.Context(), "cli_a", &protocol.ToolCompleteParams{Key: key, Output: protocol.Succeed(text)})).Accepted
}

// deferred runs a turn whose model calls a tool that defers, until it waits.
func deferred(t *testing.T, work tool.Provider, more ...plugin.Factory) (*daemon, *observer, protocol.TurnID, *protocol.Decision) {
	t.Helper()
	d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{work}, plugins: more})
	id := d.session(t)
	o := d.observe(t, id)
	turn := d.begin(t, id, "go").TurnID
	waits := o.typed(protocol.EventDecisionOpened).Decision
	synctest.Wait()
	return d, o, turn, waits
}

func TestDeferred(t *testing.T) {
	in := func(t *testing.T, name string, f func(*testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	in(t, "plugin/TL-21 runtime/T10 hooks after the call run when it is completed, and the first completion counts", func(t *testing.T) {
		seen := &notes{}
		watch := hooked{"watch", func(r *plugin.Registrar) {
			r.ToolResults().After(func(_ context.Context, c *plugin.ToolResultContext) ([]plugin.Directive, error) {
				seen.add("after " + c.Output.Text)
				return nil, nil
			})
		}}
		work := newDeferring(protocol.Deferral{})
		d, _, turn, waits := deferred(t, work, watch)
		if waits.Kind != protocol.DecisionCompletion || waits.Call.Name != "work" || len(seen.list) != 0 {
			t.Errorf("waits for %+v, hooks saw %q", waits, seen.list)
		}
		s := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: waits.SessionID})).Session
		if s.State != protocol.SessionRunning {
			t.Errorf("the session is %s: it does not wait for an answer", s.State)
		}
		if _, err := d.Tools.Complete(t.Context(), "cli_a", &protocol.ToolCompleteParams{Key: "dec_none", Output: protocol.Succeed("x")}); !errors.Is(err, engine.ErrNoCompletion) {
			t.Errorf("an unused key: %v", err)
		}
		if !d.complete(t, work.key(), "first") || d.complete(t, work.key(), "second") {
			t.Error("not just the first completion counts")
		}
		report := d.wait(t, turn)
		if got := report.ToolCalls[0].Output; got.Text != "first" || report.Outcome.Text != "done" || !slices.Equal(seen.list, []string{"after first"}) {
			t.Errorf("output %+v, outcome %+v, hooks saw %q", got, report.Outcome, seen.list)
		}
		if d.complete(t, work.key(), "late") {
			t.Error("a completion after the end counts")
		}
	})
	in(t, "runtime/B13 a key is good for its own wait only, cannot be made of what others see, and is revoked with its session", func(t *testing.T) {
		work := newDeferring(protocol.Deferral{})
		d, _, turn, waits := deferred(t, work)
		first := work.key()
		second := d.session(t)
		d.begin(t, second, "go")
		synctest.Wait()
		other := work.key()
		_, signature, _ := strings.Cut(string(other), ".")
		refused := func(key protocol.CompletionKey) {
			t.Helper()
			_, err := d.Tools.Complete(t.Context(), "cli_a", &protocol.ToolCompleteParams{Key: key, Output: protocol.Succeed("x")})
			if !errors.Is(err, engine.ErrNoCompletion) {
				t.Errorf("the key %q: %v", key, err)
			}
		}
		for _, key := range []string{"", ".", "dec_none", string(waits.ID), string(waits.ID) + ".", string(waits.ID) + "." + signature, string(first) + "0", string(first)[:len(first)-1]} {
			refused(protocol.CompletionKey(key))
		}
		d = d.restart(t, nil)
		synctest.Wait()
		if !d.complete(t, first, "first") || d.wait(t, turn).ToolCalls[0].Output.Text != "first" {
			t.Error("the key does not count after a restart")
		}
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: second}))
		refused(other)
	})
	in(t, "runtime/T10 who is pending without having said so, or without a key, has failed", func(t *testing.T) {
		for code, contract := range map[string]protocol.ToolContract{"pending_not_declared": {}, "pending_without_key": {MayDefer: true}} {
			work := toolFunc{name: "work", contract: contract, run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
				if _, err := c.Host.CompletionKey(ctx, protocol.Deferral{}); !contract.MayDefer && !errors.Is(err, tool.ErrMayNotDefer) {
					return tool.Result{}, err
				}
				return tool.Result{Pending: true}, nil
			}}
			if contract.MayDefer {
				work.run = func(context.Context, tool.Invocation) (tool.Result, error) { return tool.Result{Pending: true}, nil }
			}
			d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{work}})
			report := d.turn(t, d.session(t), "go")
			if f := report.ToolCalls[0].Output.Failure; f == nil || f.Code != code || f.Class != protocol.FailInternal || report.Outcome.Text != "done" {
				t.Errorf("%s: failure %+v", code, f)
			}
		}
	})
	in(t, "runtime/T10 a key whose call is answered at once is void", func(t *testing.T) {
		work := newDeferring(protocol.Deferral{})
		work.run = func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			key, err := c.Host.CompletionKey(ctx, protocol.Deferral{})
			work.keys.add(string(key))
			return tool.Result{Output: protocol.Succeed("at once")}, err
		}
		d, _, turn, _ := deferred(t, work)
		if got := d.wait(t, turn).ToolCalls[0].Output.Text; got != "at once" || d.complete(t, work.key(), "late") {
			t.Errorf("output %q", got)
		}
	})
	in(t, "runtime/T10 a passed deadline fails the call, or the turn", func(t *testing.T) {
		for how, want := range map[protocol.OnTimeout]protocol.OutcomeKind{"": protocol.OutcomeAssistantMessage, protocol.TimeoutFailsTurn: protocol.OutcomeRuntimeError} {
			began := time.Now()
			d, _, turn, _ := deferred(t, newDeferring(protocol.Deferral{DeadlineMs: 5000, OnTimeout: how}))
			report := d.wait(t, turn)
			if f := report.ToolCalls[0].Output.Failure; f == nil || f.Code != "completion_timeout" || f.Class != protocol.FailTimeout || report.Outcome.Kind != want || time.Since(began) != 5*time.Second {
				t.Errorf("%q: failure %+v, outcome %+v, after %v", how, f, report.Outcome, time.Since(began))
			}
			if how != "" && report.Issues[0].Code != "completion_timeout" {
				t.Errorf("issues %+v", report.Issues)
			}
		}
	})
	in(t, "runtime/T10 a cancelled turn waits no more, and cancels what goes on outside if it is to", func(t *testing.T) {
		for how, want := range map[protocol.OnCancel]int{"": 0, protocol.CancelWork: 1} {
			work := newDeferring(protocol.Deferral{OnCancel: how})
			d, _, turn, _ := deferred(t, work)
			d.interrupt(t, turn)
			report := d.wait(t, turn)
			if report.State != protocol.TurnCancelled || report.ToolCalls[0].Output.Status != protocol.OutputCancelled || len(work.cancelled.list) != want || d.complete(t, work.key(), "late") {
				t.Errorf("%q: state %s, output %+v, cancelled %q", how, report.State, report.ToolCalls[0].Output, work.cancelled.list)
			}
		}
	})
	in(t, "runtime/T10 after a restart the turn waits for the same completion, and the call is not made again", func(t *testing.T) {
		work := newDeferring(protocol.Deferral{})
		d, _, turn, _ := deferred(t, work)
		d = d.restart(t, nil)
		synctest.Wait()
		if !d.complete(t, work.key(), "at last") {
			t.Error("the completion does not count")
		}
		report := d.wait(t, turn)
		if report.ToolCalls[0].Output.Text != "at last" || report.Outcome.Text != "done" || len(work.ran.list) != 1 {
			t.Errorf("recorded %+v, ran %d times", report.ToolCalls[0], len(work.ran.list))
		}
	})
	in(t, "runtime/T13 runtime/T10 a call of a batch may defer", func(t *testing.T) {
		work := newDeferring(protocol.Deferral{})
		s := inBatch(`{"name":"work"}`, work)
		d, _, turn, _ := deferred(t, s.tools[0], s.plugins...)
		if !d.complete(t, work.key(), "x") {
			t.Error("the completion does not count")
		}
		d.wait(t, turn)
		d = start(t, s)
		id := d.session(t)
		o := d.observe(t, id)
		turn = d.begin(t, id, "go").TurnID
		key := o.typed(protocol.EventDecisionOpened).Decision
		synctest.Wait()
		d = d.restart(t, nil)
		synctest.Wait()
		d.complete(t, work.key(), "in a batch")
		if got := came(t, d.wait(t, turn).ToolCalls[0].Output); key.Call.CallID != "c1/0" || got[0].Text != "in a batch" {
			t.Errorf("results %+v", got)
		}
	})
}

func TestKilledDeferred(t *testing.T) {
	t.Run("plugin/TL-21 runtime/T10 killed while a call waits for its completion", func(t *testing.T) {
		dir := t.TempDir()
		kill(t, dir, callWaits)
		key, err := os.ReadFile(filepath.Join(dir, "key"))
		if err != nil {
			t.Fatal(err)
		}
		s := crashSetup(dir, callWaits, nil)
		s.dir = filepath.Join(dir, "store")
		d := start(t, s)
		if !d.complete(t, protocol.CompletionKey(key), "after all") {
			t.Error("the completion does not count")
		}
		turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: victimSession})).Data
		report := d.wait(t, turns[0].TurnID)
		if report.ToolCalls[0].Output.Text != "after all" || report.Outcome.Text != "done" || counted(dir, "later") != 1 {
			t.Errorf("recorded %+v, outcome %+v, ran %d times", report.ToolCalls, report.Outcome, counted(dir, "later"))
		}
	})
}
