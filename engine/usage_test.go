package engine_test

import (
	"slices"
	"strings"
	"testing"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestTooLarge(t *testing.T) {
	t.Run("runtime/P04 a turn that is too large to store fails, its items are withdrawn, the head stays", func(t *testing.T) {
		big := strings.Repeat("x", 3<<20)
		script := &scripted.Script{Turns: []scripted.Turn{{Match: &scripted.Match{LastUserContains: "go"}, Replies: []scripted.Reply{
			{Text: big, ToolCalls: []scripted.Call{{ID: "c1", Name: "look"}}, Usage: &protocol.Usage{Input: 5}},
			{Text: big, ToolCalls: []scripted.Call{{ID: "c2", Name: "look"}}},
			{Text: strings.Repeat(big, 6)}, // the report has this text too
		}}}, Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}}
		d := start(t, setup{model: scripted.New(script), tools: []tool.Provider{says("look", "fine")}})
		id := d.session(t)
		o := d.observe(t, id)
		before := must[persistence.Session](t)(d.store.Session(t.Context(), id)).Head
		report := d.turn(t, id, "go")
		o.over(report.TurnID)
		after := must[persistence.Session](t)(d.store.Session(t.Context(), id)).Head
		if report.Outcome.Kind != protocol.OutcomeRuntimeError || report.Issues[0].Code != "commit_budget" || after != before {
			t.Errorf("outcome %s, issues %+v, head %+v, was %+v", report.Outcome.Kind, report.Issues, after, before)
		}
		if left := shownItems(o.all); len(left) != 0 {
			t.Errorf("an observer is left with items %v", left)
		}
		if report.Usage.Input != 5 || len(report.Calls) != 3 {
			t.Errorf("usage %+v of %d calls: the report must contain all usage that was paid for", report.Usage, len(report.Calls))
		}
		o.gapless(0)
		if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
			t.Errorf("the next turn ended as %s", next.State)
		}
	})
}

func TestUsage(t *testing.T) {
	t.Run("runtime/S14 the ledger has five buckets, by source and model", func(t *testing.T) {
		u := protocol.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1}
		d := start(t, setup{model: replies(scripted.Reply{Text: "a", Usage: &u}, scripted.Reply{Text: "b"})})
		id := d.session(t)
		d.turn(t, id, "go")
		ask := &protocol.CompletionParams{SessionID: id, Label: "title", Messages: []protocol.Message{protocol.UserMessage(text("title?"), nil)}}
		must[*protocol.CompletionResult](t)(d.Completions.Create(t.Context(), ask))
		d = d.restart(t, nil)
		usage := must[*protocol.UsageReadResult](t)(d.Completions.Usage(t.Context(), &protocol.UsageReadParams{SessionID: id}))
		want := []protocol.UsageRow{{Source: "title", Model: "m", Usage: u, Calls: 1}, {Source: "turn", Model: "m", Usage: u, Calls: 1}}
		if !slices.Equal(usage.Data, want) || usage.Total.Total() != 20 {
			t.Errorf("ledger %+v, total %+v", usage.Data, usage.Total)
		}
		if got := must[persistence.Session](t)(d.store.Session(t.Context(), id)).Usage; got != usage.Total {
			t.Errorf("the session says %+v, its ledger %+v", got, usage.Total)
		}
	})
	t.Run("runtime/S14 a sum that overflows fails the turn", func(t *testing.T) {
		almost := &protocol.Usage{Input: 1<<63 - 5}
		d := start(t, setup{model: replies(scripted.Reply{Text: "a", Usage: almost})})
		id := d.session(t)
		if first := d.turn(t, id, "go"); first.State != protocol.TurnCompleted {
			t.Errorf("first: %s", first.State)
		}
		o := d.observe(t, id)
		for range 5 { // each further turn uses one token
			d.turn(t, id, "and?")
		}
		last := d.turn(t, id, "and?")
		if last.Outcome.Kind != protocol.OutcomeRuntimeError || last.Issues[0].Code != "token_usage_overflow" {
			t.Errorf("last: %+v %+v", last.Outcome, last.Issues)
		}
		o.over(last.TurnID)
		if got := must[persistence.Session](t)(d.store.Session(t.Context(), id)).Usage.Input; got < almost.Input {
			t.Errorf("the session's usage became %d", got)
		}
	})
}
