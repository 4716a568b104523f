package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// spent returns the rows of a session's usage, each as source, calls and input tokens.
func (d *daemon) spent(t *testing.T, id protocol.SessionID) (rows []string) {
	t.Helper()
	for _, row := range must[*protocol.UsageReadResult](t)(d.Completions.Usage(t.Context(), &protocol.UsageReadParams{SessionID: id})).Data {
		rows = append(rows, fmt.Sprintf("%s %d %d", row.Source, row.Calls, row.Usage.Input))
	}
	return rows
}

// consulting is a tool that asks a model a question of its own.
func consulting() toolFunc {
	return toolFunc{name: "work", run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
		r, err := plugin.ForTool(c).Models.Complete(ctx, &protocol.CompletionParams{Text: "how many?", Label: "count"})
		if err != nil {
			return tool.Result{}, err
		}
		return tool.Result{Output: protocol.Succeed(r.Text)}, nil
	}}
}

func TestCompletions(t *testing.T) {
	t.Run("runtime/M14 a text and a whole request ask the same, and the result has the message, its text and the call", func(t *testing.T) {
		model := recites("fine", "fine")
		d := start(t, setup{model: model})
		short := must[*protocol.CompletionResult](t)(d.Completions.Create(t.Context(), &protocol.CompletionParams{Text: "well?"}))
		whole := must[*protocol.CompletionResult](t)(d.Completions.Create(t.Context(), &protocol.CompletionParams{Messages: []protocol.Message{userSays("well?")}}))
		if diff := cmp.Diff(model.asked[0].Messages, model.asked[1].Messages); diff != "" || model.asked[0].System != "" {
			t.Errorf("the requests differ: %s", diff)
		}
		for _, r := range []*protocol.CompletionResult{short, whole} {
			if r.Text != "fine" || r.Message.Answer() != "fine" || r.Stop != protocol.StopEnd || r.Call.Usage.Input != 10 || r.Value != nil || r.Problem != "" {
				t.Errorf("result %+v", r)
			}
		}
	})

	t.Run("runtime/M14 a tool's call is on its session's ledger under its label, and traced with its turn", func(t *testing.T) {
		keep, read := traced(t)
		model := recites("", "seven", "done")
		model.replies[0] = calls("work")
		d := start(t, setup{model: model, tools: []tool.Provider{consulting()}, config: keep})
		id := d.session(t)
		r := d.turn(t, id, "go")
		if got := r.ToolCalls[0].Output.Text; got != "seven" || r.Usage.Input != 20 || len(r.Calls) != 2 {
			t.Errorf("the tool returned %q, the turn used %+v in %d calls", got, r.Usage, len(r.Calls))
		}
		if diff := cmp.Diff([]string{"count 1 10", "turn 2 20"}, d.spent(t, id)); diff != "" {
			t.Errorf("the ledger: %s", diff)
		}
		records, _ := read()
		for _, kind := range []trace.Kind{trace.ModelStarted, trace.ModelCompleted} {
			if !slices.ContainsFunc(kinds(records)[kind], func(rec trace.Record) bool {
				return rec.SessionID == id && rec.TurnID == r.TurnID && strings.Contains(string(rec.Body), `"label":"count"`)
			}) {
				t.Errorf("the trace has no %s of the call in its turn", kind)
			}
		}
	})

	t.Run("runtime/M14 within a tool attempt a call has no row of its own in the turn's journal", func(t *testing.T) {
		rows := func(work toolFunc, answers ...string) (all []string) {
			g := newGate("hold")
			model := recites(answers...)
			model.replies = slices.Insert(model.replies, 0, calls("work"))
			model.replies = append(model.replies, calls("hold"), scripted.Reply{Text: "done"})
			d := start(t, setup{model: model, tools: []tool.Provider{work, g}})
			turn := d.begin(t, d.session(t), "go").TurnID
			<-g.called
			for _, e := range must[[]persistence.Effect](t)(d.store.Effects(t.Context(), turn)) {
				all = append(all, fmt.Sprintf("%d.%d %s", e.ID, e.Ordinal, e.Kind))
			}
			close(g.open)
			if r := d.wait(t, turn); r.State != protocol.TurnCompleted {
				t.Errorf("the turn is %s", r.State)
			}
			return all
		}
		if diff := cmp.Diff(rows(says("work", "seven")), rows(consulting(), "seven")); diff != "" {
			t.Errorf("the call changes the journal: %s", diff)
		}
	})

	t.Run("runtime/M14 the same request with the same key makes one call", func(t *testing.T) {
		model := recites("one", "two")
		d := start(t, setup{model: model})
		id := d.session(t)
		p := &protocol.CompletionParams{Mutation: protocol.Mutation{IdempotencyKey: "k"}, SessionID: id, Text: "well?"}
		must[*protocol.CompletionResult](t)(d.Completions.Create(t.Context(), p))
		again := must[*protocol.CompletionResult](t)(d.Completions.Create(t.Context(), p))
		if again.Text != "one" || !again.Duplicate || len(model.asked) != 1 {
			t.Errorf("result %+v after %d calls", again, len(model.asked))
		}
		if diff := cmp.Diff([]string{"completion 1 10"}, d.spent(t, id)); diff != "" {
			t.Errorf("the ledger: %s", diff)
		}
	})

	t.Run("runtime/M14 part9/structured with a schema the result has the value or the problem, after one call, which is on the ledger", func(t *testing.T) {
		for _, c := range []struct {
			reply, value, problem string
			stop                  protocol.StopReason
		}{
			{"```json\n{\"name\": \"Bern\"}\n```", `{"name":"Bern"}`, "", ""},
			{`{}`, "", `validating root: required: missing properties: ["name"]`, ""},
			{`{"name":"Bern"}`, "", "the reply stopped early: outputLimit", protocol.StopOutputLimit},
		} {
			model := recites(c.reply, "not asked")
			model.replies[0].Stop = c.stop
			d := start(t, setup{model: model})
			id := d.session(t)
			r := must[*protocol.CompletionResult](t)(d.Completions.Create(t.Context(), &protocol.CompletionParams{
				SessionID: id, System: "You help.", Text: "well?", Schema: json.RawMessage(citySchema),
			}))
			if string(r.Value) != c.value || r.Problem != c.problem || r.Text != c.reply || len(model.asked) != 1 {
				t.Errorf("after %q: value %s, problem %q, text %q, %d calls", c.reply, r.Value, r.Problem, r.Text, len(model.asked))
			}
			if req := model.asked[0]; string(req.Output.Schema) != citySchema || !strings.HasPrefix(req.System, "You help.\n\n# Format") {
				t.Errorf("asked for %+v with the system prompt %q", req.Output, req.System)
			}
			if diff := cmp.Diff([]string{"completion 1 10"}, d.spent(t, id)); diff != "" {
				t.Errorf("the ledger: %s", diff)
			}
		}
	})
}
