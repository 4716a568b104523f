package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// lent gives the capabilities of a context transform, which is granted all of them.
func lent(t *testing.T, s setup) (*daemon, protocol.SessionID, plugin.Capabilities) {
	t.Helper()
	var host plugin.Capabilities
	s.plugins = append(s.plugins, hooked{"a", func(r *plugin.Registrar) {
		r.Context().Transform(0, func(_ context.Context, v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			host = v.Host
			return pc, nil
		})
	}})
	s.cwd = t.TempDir()
	d := start(t, s)
	id := d.session(t)
	d.turn(t, id, "go")
	return d, id, host
}

func TestCapabilities(t *testing.T) {
	answers := func() setup {
		return setup{model: replies(scripted.Reply{Text: "ok"}), tools: []tool.Provider{says("work", "fine")}}
	}
	t.Run("plugin/HC-01 a hook can read its own and other sessions, and gets an error for missing ones", func(t *testing.T) {
		d, id, host := lent(t, answers())
		other := d.session(t)
		for _, named := range []protocol.SessionID{"", id, other} {
			v := must[*plugin.View](t)(host.State.View(t.Context(), named))
			if want := map[bool]int{true: 0, false: 2}[named == other]; len(v.Messages()) != want {
				t.Errorf("session %q has %d messages, want %d", named, len(v.Messages()), want)
			}
			if tools := must[[]protocol.ToolRecord](t)(host.State.Catalog(t.Context(), named)); len(tools) != 1 || tools[0].Name != "work" {
				t.Errorf("session %q has tools %+v", named, tools)
			}
			must[protocol.ToolState](t)(host.State.ToolState(t.Context(), named))
		}
		if _, err := host.State.View(t.Context(), "ses_none"); !errors.Is(err, persistence.ErrNotFound) {
			t.Errorf("a session that is not there: %v", err)
		}
	})
	t.Run("plugin/HC-01 plugin/S-11 a hook changes tools and gets the new generation", func(t *testing.T) {
		_, id, host := lent(t, answers())
		generation := must[int64](t)(host.State.SetMembership(t.Context(), "", []string{"work"}, false))
		state := must[protocol.ToolState](t)(host.State.ToolState(t.Context(), id))
		if state.Generation != generation {
			t.Errorf("generation %d, told %d", state.Generation, generation)
		}
		if _, err := host.State.ApplyToolState(t.Context(), id, state); err != nil {
			t.Errorf("what was read last cannot be applied: %v", err)
		}
		stale, ok := errors.AsType[*engine.GenerationError](errOf(host.State.ApplyToolState(t.Context(), id, state)))
		if !ok || stale.Current != generation+1 {
			t.Errorf("what is stale was applied: %+v", stale)
		}
	})
	t.Run("plugin/HC-04 plugin/HC-06 a hook can drive sessions that it created, but not its own", func(t *testing.T) {
		_, id, host := lent(t, answers())
		made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{}))
		turn := must[protocol.TurnID](t)(host.Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_mine", SessionID: made.SessionID, Input: text("hi")}))
		if report := must[*protocol.TurnReport](t)(host.Lifecycle.AwaitTurn(t.Context(), turn)); report.Outcome.Text != "ok" {
			t.Errorf("report %+v", report)
		}
		if err := host.Lifecycle.CloseSession(t.Context(), id); !errors.Is(err, engine.ErrSessionInUse) {
			t.Errorf("closing its own session: %v", err)
		}
		if _, err := host.Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_own", SessionID: id, Input: text("hi")}); !errors.Is(err, engine.ErrSessionInUse) {
			t.Errorf("a turn in its own session: %v", err)
		}
		reads := protocol.PluginInputs{protocol.ServersID: json.RawMessage(`{"resources":[{"server":"s","uri":"u"}]}`)}
		_, err := host.Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_reads", SessionID: made.SessionID, Input: text("hi"), PluginInputs: reads})
		if err == nil || !strings.Contains(err.Error(), "is for clients") {
			t.Errorf("part13/6 a turn of a plugin that reads resources of a server: %v", err)
		}
		for range 2 {
			if err := host.Lifecycle.CloseSession(t.Context(), made.SessionID); err != nil {
				t.Errorf("closing: %v", err)
			}
		}
	})
	t.Run("plugin/HC-09 plugin/HC-10 plugin/S-06 nodes are appended if their base is on the active path, once per operation", func(t *testing.T) {
		d, id, host := lent(t, answers())
		base := d.graph(t, id).Data[1].ID
		d.turn(t, id, "more")
		p := &protocol.GraphAppendParams{OperationID: "op", RequiresAncestorNodeID: base, Nodes: summary("derived")}
		first := must[*protocol.GraphAppendResult](t)(host.Graph.AppendNodes(t.Context(), p))
		again := must[*protocol.GraphAppendResult](t)(host.Graph.AppendNodes(t.Context(), p))
		if first.Status != protocol.Appended || again.Leaf != first.Leaf || len(d.graph(t, id).Data) != 6 {
			t.Errorf("first %+v, again %+v, %d nodes", first, again, len(d.graph(t, id).Data))
		}
		other := *p
		other.Nodes = summary("something else")
		if _, err := host.Graph.AppendNodes(t.Context(), &other); !errors.Is(err, persistence.ErrReceiptConflict) {
			t.Errorf("other nodes for the same operation: %v", err)
		}
		must[*protocol.SessionRewindResult](t)(d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToNode: base}))
		left := &protocol.GraphAppendParams{OperationID: "late", RequiresAncestorNodeID: first.Leaf, Nodes: summary("late")}
		if got := must[*protocol.GraphAppendResult](t)(host.Graph.AppendNodes(t.Context(), left)); got.Status != protocol.StaleBranch || d.graph(t, id).Head.Leaf != base {
			t.Errorf("onto a branch that was left: %+v", got)
		}
	})
	t.Run("plugin/HC-11 a model call of a hook is recorded under its label, and traced with the turn", func(t *testing.T) {
		keep, read := traced(t)
		s := answers()
		s.config = keep
		d, id, host := lent(t, s)
		done := must[*protocol.CompletionResult](t)(host.Models.Complete(t.Context(), &protocol.CompletionParams{
			Messages: []protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "sum up"}}}}, Label: "memory",
		}))
		if done.Text != "ok" {
			t.Errorf("answered %+v", done)
		}
		booked := false
		for _, row := range must[*protocol.UsageReadResult](t)(d.Completions.Usage(t.Context(), &protocol.UsageReadParams{SessionID: id})).Data {
			booked = booked || row.Source == "memory" && row.Calls == 1
		}
		if !booked {
			t.Error("the call is not in the session's ledger")
		}
		records, _ := read()
		for _, kind := range []trace.Kind{trace.ModelStarted, trace.ModelCompleted} {
			if !slices.ContainsFunc(kinds(records)[kind], func(r trace.Record) bool {
				return r.SessionID == id && r.TurnID != "" && bytes.Contains(r.Body, []byte(`"label":"memory"`))
			}) {
				t.Errorf("the trace has no %s of the call", kind)
			}
		}
		if _, data := read(); bytes.Contains(data, []byte("sum up")) {
			t.Error("the trace has the text of the prompt")
		}
	})
	t.Run("plugin/HC-06 of two turns that hooks start at once in a session, one is rejected without a trace", func(t *testing.T) {
		g := newGate("work")
		model := scripted.New(&scripted.Script{
			Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "trn_"}, Replies: []scripted.Reply{calls("work"), {Text: "done"}}}},
			Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}},
		})
		d, _, host := lent(t, setup{model: model, tools: []tool.Provider{g}, cwd: t.TempDir()})
		other := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Cwd: d.setup.cwd})).SessionID
		errs := make(chan error, 2)
		for _, id := range []protocol.TurnID{"trn_one", "trn_two"} {
			go func() {
				_, err := host.Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: id, SessionID: other, Input: text(string(id)), WhenBusy: protocol.BusyRefuse})
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		_, busy := errors.AsType[*engine.TurnActiveError](cmp.Or(first, second))
		if (first == nil) == (second == nil) || !busy {
			t.Errorf("the starts answer %v and %v, want one TurnActiveError", first, second)
		}
		<-g.called
		close(g.open)
		must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: other}))
		if all := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: other})).Data; len(all) != 1 || all[0].State != protocol.TurnCompleted {
			t.Errorf("the session has the turns %+v, want the one that was started", all)
		}
	})
}

func errOf[T any](_ T, err error) error { return err }

func TestToolCapabilities(t *testing.T) {
	t.Run("plugin/HC-02 a tool can read its session, start subagents and call a model, but not append to history", func(t *testing.T) {
		var got plugin.Capabilities
		work := toolFunc{name: "work", run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			got = plugin.ForTool(c)
			made, err := got.Lifecycle.CreateSession(ctx, &protocol.SessionNewParams{})
			if err != nil {
				return tool.Result{}, err
			}
			turn, err := got.Lifecycle.StartTurn(ctx, &plugin.TurnRequest{TurnID: "trn_tool", SessionID: made.SessionID, Input: text("you")})
			if err != nil {
				return tool.Result{}, err
			}
			report, err := got.Lifecycle.AwaitTurn(ctx, turn)
			if err != nil {
				return tool.Result{}, err
			}
			said, err := got.Models.Complete(ctx, &protocol.CompletionParams{Messages: []protocol.Message{protocol.UserMessage(text("me"), nil)}})
			if err != nil {
				return tool.Result{}, err
			}
			view, err := got.State.View(ctx, "")
			return tool.Result{Output: protocol.Succeed(report.Outcome.Text + said.Text + string(view.Session.ID))}, err
		}}
		d := start(t, setup{tools: []tool.Provider{work}, model: scripted.New(&scripted.Script{
			Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "go"}, Replies: []scripted.Reply{calls("work"), {Text: "done"}}}},
			Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "yes"}}},
		})})
		id := d.session(t)
		if out := d.turn(t, id, "go").ToolCalls[0].Output; out.Text != "yesyes"+string(id) {
			t.Errorf("output %+v", out)
		}
		if _, err := got.NeedGraph(); err == nil || got.Tracer == nil {
			t.Errorf("capabilities %+v", got)
		}
	})
}
