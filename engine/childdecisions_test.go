package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// openIn are the ids of the open decisions of a session and of those below it.
func (d *daemon) openIn(t *testing.T, id protocol.SessionID) (ids []protocol.DecisionID) {
	t.Helper()
	for _, one := range must[*protocol.DecisionListResult](t)(d.Decisions.List(t.Context(), &protocol.DecisionListParams{SessionID: id})).Data {
		ids = append(ids, one.ID)
	}
	return ids
}

// allows lets the call run that a decision is about.
func (d *daemon) allows(t *testing.T, asked protocol.Decision) *protocol.DecisionRespondResult {
	t.Helper()
	return must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{
		DecisionID: asked.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: asked.ArgsHash,
	}))
}

// watchful is a daemon whose model calls the tool look on request, which needs approval.
func watchful(t *testing.T) *daemon {
	t.Helper()
	return start(t, setup{model: looks(), tools: []tool.Provider{says("look", "fine")}, config: asking})
}

func looks() provider.Provider {
	return scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "look"}, Replies: []scripted.Reply{calls("look"), {Text: "done"}}}},
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}},
	})
}

func TestQuestionsOfChildren(t *testing.T) {
	t.Run("issue/5-6 peers/R5 runtime/B12 subscribers of a session see questions of all its descendants, and can answer them after a restart", func(t *testing.T) {
		d := watchful(t)
		root, other := d.session(t), d.session(t)
		child := d.worker(t, root, "work")
		grandchild := d.worker(t, child, "work")
		above, beside := d.observe(t, root), d.observe(t, other)
		turn := d.begin(t, grandchild, "look").TurnID
		told := above.typed(protocol.EventDecisionOpened)
		asked := *told.Decision
		if told.Seq != 0 || told.SessionID != root || told.TurnID != "" || asked.SessionID != grandchild || asked.TurnID != turn {
			t.Errorf("told %+v of %+v", told, asked)
		}
		want := []protocol.DecisionID{asked.ID}
		for id, want := range map[protocol.SessionID][]protocol.DecisionID{root: want, child: want, grandchild: want, other: nil} {
			if got := d.openIn(t, id); !slices.Equal(got, want) {
				t.Errorf("of %s are open %v, want %v", id, got, want)
			}
		}
		d = d.restart(t, nil)
		if got := d.openIn(t, root); !slices.Equal(got, want) {
			t.Errorf("after a restart are open %v", got)
		}
		again := d.observe(t, root, told.Seq)
		if got := again.first.Decisions; len(got) != 1 || got[0].ID != asked.ID || got[0].DeadlineMs != asked.DeadlineMs {
			t.Errorf("who attaches after a restart is given %+v", got)
		}
		if !d.allows(t, asked).Won {
			t.Error("the answer does not count")
		}
		if got := again.typed(protocol.EventDecisionResolved).Decision; got.ID != asked.ID || got.Answer.By != "cli_a" {
			t.Errorf("the subscriber of the parent got %+v", got)
		}
		if report := d.wait(t, turn); report.ToolCalls[0].Output.Text != "fine" {
			t.Errorf("the call came to %+v", report.ToolCalls[0].Output)
		}
		d.turn(t, root, "go on") // events of child sessions have not shifted the parent's numbers
		again.gapless(0)
		if len(beside.all) != 0 {
			t.Errorf("the subscriber of another session got %v", types(beside.all))
		}
	})
	t.Run("issue/5-6 peers/R5 a slow subscriber still gets the latest state of a descendant's question", func(t *testing.T) {
		flood := make([]string, 1<<15)
		for i := range flood {
			flood[i] = strings.Repeat("x", 100)
		}
		asks, many := looks(), instant(flood...)
		model := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
			next := asks
			if text, err := json.Marshal(req); err != nil || strings.Contains(string(text), "flood") {
				next = many
			}
			for chunk, err := range next.Stream(ctx, req) {
				if !yield(chunk, err) {
					return
				}
			}
		})
		d := start(t, setup{model: model, tools: []tool.Provider{says("look", "fine")}, config: asking})
		root := d.session(t)
		first, second := d.worker(t, root, "work"), d.worker(t, root, "work")
		above := d.observe(t, root)
		one, two := d.asks(t, first), d.asks(t, second)
		d.allows(t, one)
		d.turn(t, root, "flood")
		above.until(func(e protocol.Event) bool { return e.Type == protocol.EventTurnCompleted })
		var told []string
		for _, e := range above.all {
			if e.Decision != nil {
				told = append(told, string(e.Type)+" "+string(e.Decision.ID))
			}
		}
		slices.Sort(told) // two sessions ask, each in its own time
		if want := []string{"decision/opened " + string(two.ID), "decision/resolved " + string(one.ID)}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
	t.Run("issue/5-6 a call that waits for its completion is listed, but not shown to the parent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			work := newDeferring(protocol.Deferral{})
			d := start(t, setup{
				model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{work},
			})
			root := d.session(t)
			child := d.worker(t, root, "work")
			above := d.observe(t, root)
			d.begin(t, child, "go")
			synctest.Wait()
			if all := d.openIn(t, root); len(all) != 1 || len(d.observe(t, root).first.Decisions) != 0 {
				t.Errorf("open are %v, and shown %v", all, d.observe(t, root).first.Decisions)
			}
			must[*protocol.SeqResult](t)(d.Sessions.SetTitle(t.Context(), &protocol.SessionSetTitleParams{SessionID: root, Title: "after it"}))
			above.typed(protocol.EventSessionConfigured)
			if got := above.of(protocol.EventDecisionOpened); len(got) != 0 {
				t.Errorf("told %+v", got)
			}
		})
	})
	t.Run("issue/5-6 deleting a session withdraws its question from the parent", func(t *testing.T) {
		d := watchful(t)
		root := d.session(t)
		child := d.worker(t, root, "work")
		above := d.observe(t, root)
		asked := d.asks(t, child)
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: child}))
		if got := above.typed(protocol.EventDecisionResolved).Decision; got.ID != asked.ID || got.Answer.Choice != protocol.ChooseCancelled {
			t.Errorf("told %+v", got)
		}
		if got := d.openIn(t, root); len(got) != 0 {
			t.Errorf("open are %v", got)
		}
	})
}

// asks begins a turn of a session, and gives what it asks.
func (d *daemon) asks(t *testing.T, id protocol.SessionID) protocol.Decision {
	t.Helper()
	o := d.observe(t, id)
	d.begin(t, id, "look")
	return *o.typed(protocol.EventDecisionOpened).Decision
}
