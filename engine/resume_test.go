package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// remembering is a model that records its requests.
type remembering struct {
	provider.Provider
	asked []*provider.Request
}

func (r *remembering) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	r.asked = append(r.asked, req)
	return r.Provider.Stream(ctx, req)
}

func TestResume(t *testing.T) {
	t.Run("runtime/P09 a resumed turn continues with its journal and the configuration and history it started with", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			script := &scripted.Script{Turns: []scripted.Turn{
				{Match: &scripted.Match{LastUserContains: "go"}, Replies: []scripted.Reply{calls("one", "two")}},
				{Match: &scripted.Match{LastUserContains: "steered"}, Replies: []scripted.Reply{calls("three"), {Text: "done"}}},
			}, Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}}
			ran := map[string]int{}
			counting := func(name string, run func(context.Context, tool.Invocation) (tool.Result, error)) toolFunc {
				return toolFunc{name: name, contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
					run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
						ran[name]++
						return run(ctx, call)
					}}
			}
			wait := func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
				if call.Attempt == 1 {
					<-ctx.Done()
					return tool.Result{}, ctx.Err()
				}
				return tool.Result{Output: protocol.Succeed("second")}, nil
			}
			fine := func(context.Context, tool.Invocation) (tool.Result, error) {
				return tool.Result{Output: protocol.Succeed("fine")}, nil
			}
			model := &remembering{Provider: scripted.New(script)}
			g := newGate("two")
			d := start(t, setup{model: model, tools: []tool.Provider{counting("one", fine), g, counting("three", wait)}})
			id := d.session(t)
			live := d.observe(t, id)
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: new("old prompt")}))
			turn := d.begin(t, id, "go").TurnID
			<-g.called
			must[*protocol.TurnSteerResult](t)(d.Turns.Steer(t.Context(), &protocol.TurnSteerParams{TurnID: turn, Input: text("steered")}))
			close(g.open)
			synctest.Wait() // the third tool runs now
			note := protocol.NodeBody{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "beside"}}}}
			must[*protocol.GraphAppendResult](t)(d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: []protocol.NodeBody{note}}))
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: new("new prompt")}))
			live.until(func(e protocol.Event) bool { return e.Config != nil && e.Config.Prompt == "new prompt" })
			calls := len(model.asked)
			time.Sleep(time.Second) // so that nodes that are created again would have another time
			d = d.restart(t, nil)
			report := d.wait(t, turn)
			if report.State != protocol.TurnCompleted || ran["one"] != 1 || ran["three"] != 2 || len(model.asked) != calls+1 {
				t.Errorf("state %s, tools ran %v, %d model calls after the restart", report.State, ran, len(model.asked)-calls)
			}
			last := model.asked[len(model.asked)-1]
			if !strings.Contains(last.System, "old prompt") || bytes.Contains(encoded(t, last.Messages), []byte("beside")) {
				t.Errorf("the resumed turn was asked with system %q, %s", last.System, encoded(t, last.Messages))
			}
			want := []string{"userMessage: beside", "userMessage: go", "toolCall one: success", "toolCall two: success", "userMessage: steered", "toolCall three: success", "agentMessage: done"}
			if got := d.history(t, id); !slices.Equal(got, want) {
				t.Errorf("history\n%q, want\n%q", got, want)
			}
			o := d.observe(t, id, 0)
			o.over(turn)
			o.gapless(0)
			once(t, o)
			if got, want := o.durable(), live.durable(); !slices.Equal(got[:len(want)], want) {
				t.Errorf("after the restart the log replays\n%q, it was\n%q", got[:len(want)], want)
			}
			usage := must[*protocol.UsageReadResult](t)(d.Completions.Usage(t.Context(), &protocol.UsageReadParams{SessionID: id})).Data
			if len(usage) != 1 || usage[0].Calls != int64(len(report.Calls)) || usage[0].Unknown != 1 { // of the last reply, which had no usage
				t.Errorf("ledger %+v of %d calls: a tool ran when the daemon stopped, so none was lost", usage, len(report.Calls))
			}
			if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s %+v", next.State, next.Issues)
			}
			if last := model.asked[len(model.asked)-1]; !strings.Contains(last.System, "new prompt") {
				t.Errorf("the next turn was asked with system %q", last.System)
			}
		})
	})
	t.Run("runtime/P09 a turn that has stored nothing yet also keeps its configuration and history", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := &remembering{Provider: replies(scripted.Reply{Text: "so far", Stall: true})}
			d := start(t, setup{model: model})
			id := d.session(t)
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: new("old prompt")}))
			turn := d.begin(t, id, "go").TurnID
			synctest.Wait()
			note := protocol.NodeBody{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "beside"}}}}
			must[*protocol.GraphAppendResult](t)(d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: []protocol.NodeBody{note}}))
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: new("new prompt")}))
			again := &remembering{Provider: replies(scripted.Reply{Text: "done"})}
			d = d.restart(t, func(s *setup) { s.model = again })
			report := d.wait(t, turn)
			asked := again.asked[0]
			if !strings.Contains(asked.System, "old prompt") || len(asked.Messages) != 1 || report.State != protocol.TurnCompleted {
				t.Errorf("state %s, asked with system %q and %s", report.State, asked.System, encoded(t, asked.Messages))
			}
		})
	})
	t.Run("runtime/P09 an effect that differs from the journal ends the turn, and nothing runs again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ran := 0
			work := toolFunc{name: "work", contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
				run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
					ran++
					<-ctx.Done()
					return tool.Result{}, ctx.Err()
				}}
			d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{work}})
			id := d.session(t)
			live := d.observe(t, id)
			turn := d.begin(t, id, "go").TurnID
			live.until(func(e protocol.Event) bool { return e.Type == protocol.EventItemStarted && e.Seq != 0 })
			synctest.Wait()
			d = d.restart(t, func(s *setup) { s.driver = stricter{} })
			report := d.wait(t, turn)
			if report.Outcome.Kind != protocol.OutcomeRuntimeError || report.Issues[0].Code != "journal_mismatch" || ran != 1 {
				t.Errorf("outcome %+v, issues %+v, the tool ran %d times", report.Outcome, report.Issues, ran)
			}
			o := d.observe(t, id, 0)
			o.over(turn)
			o.gapless(0)
			if shown, kept := shownItems(o.all), d.itemIDs(t, id); !slices.Equal(shown, kept) {
				t.Errorf("an observer is left with items %v, history has %v", shown, kept)
			}
			if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s %+v", next.State, next.Issues)
			}
		})
	})
	t.Run("runtime/T17 a cancellation stored before the restart ends the turn after it", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		dir := d.store.Dir()
		d.stop()
		amend(t, dir, turn, func(row *persistence.Turn) { row.Cancel = &protocol.CancelEvidence{RequestID: "r1"} })
		d = d.restart(t, nil)
		report := d.wait(t, turn)
		if report.State != protocol.TurnCancelled || report.Outcome.Cancel.RequestID != "r1" || report.ToolCalls[0].Output.Status != protocol.OutputUnknown {
			t.Errorf("state %s, output %+v", report.State, report.ToolCalls)
		}
		o := d.observe(t, id, 0)
		o.over(turn)
		if shown, kept := shownItems(o.all), d.itemIDs(t, id); !slices.Equal(shown, kept) {
			t.Errorf("an observer is left with items %v, history has %v", shown, kept)
		}
	})
}

// once checks that no event was sent twice.
func once(t *testing.T, o *observer) {
	t.Helper()
	seen := map[string]bool{}
	for _, e := range o.all {
		if e.Seq == 0 {
			continue
		}
		key := string(e.Type) + string(e.TurnID) + string(e.ItemID)
		if e.Call != nil {
			key += string(encoded(t, e.Call.Iteration))
		}
		switch e.Type {
		case protocol.EventItemStarted, protocol.EventItemCompleted, protocol.EventModelRecorded, protocol.EventTurnAccepted, protocol.EventTurnCompleted:
			if seen[key] {
				t.Errorf("%s of %s was sent twice", e.Type, e.ItemID)
			}
			seen[key] = true
		}
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// amend changes the row of an open turn in a store that no daemon uses.
func amend(t *testing.T, dir string, id protocol.TurnID, change func(*persistence.Turn)) {
	t.Helper()
	d, err := setup{}.open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- d.store.Run(ctx) }()
	row := must[persistence.StoredTurn](t)(d.store.Turn(t.Context(), id))
	change(&row.Turn)
	must[persistence.Result](t)(d.store.Commit(t.Context(), &persistence.Commit{Session: row.Session, AtMs: 1, Turns: []persistence.Turn{row.Turn}}))
	cancel()
	<-ran
	if err := d.store.Close(); err != nil {
		t.Fatal(err)
	}
}

// stricter is the standard driver as a later release might change it: its model calls differ.
type stricter struct{ standard.Driver }

func (stricter) ID() string                                         { return "standard" }
func (d stricter) Build(plugin.BuildContext) (plugin.Plugin, error) { return d, nil }

func (d stricter) Register(r *plugin.Registrar) error {
	r.Protocol().Driver(d)
	return nil
}

func (stricter) Prepare(turn.View) []turn.Action {
	return []turn.Action{turn.StartModel(provider.ToolsRequired, provider.OutputSpec{JSON: true})}
}
