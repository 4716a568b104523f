package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// asker is a tool that asks a person the same a few times, and says what was answered.
func asker(replay protocol.Replay, ran *notes, times int) tool.Provider {
	q := tool.Question{Prompt: "Which?", Form: []byte(`{"type":"object","required":["n"]}`), Deadline: time.Hour}
	return toolFunc{name: "work", contract: protocol.ToolContract{Replay: replay}, run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
		ran.add("x")
		var text strings.Builder
		for range times {
			a, err := c.Host.Ask(ctx, q)
			if err != nil {
				return tool.Result{}, err
			}
			text.WriteString(string(a.Choice) + string(a.Value) + ";")
		}
		return tool.Result{Output: protocol.Succeed(text.String())}, nil
	}}
}

// asked runs a turn whose model calls such a tool, until it asks for the first of two times.
func asked(t *testing.T, replay protocol.Replay, ran *notes) (*daemon, *observer, protocol.SessionID, protocol.TurnID, *protocol.Decision) {
	t.Helper()
	return askedTimes(t, replay, ran, 2)
}

func askedTimes(t *testing.T, replay protocol.Replay, ran *notes, times int) (*daemon, *observer, protocol.SessionID, protocol.TurnID, *protocol.Decision) {
	t.Helper()
	d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{asker(replay, ran, times)}})
	id := d.session(t)
	o := d.observe(t, id)
	turn := d.begin(t, id, "go").TurnID
	return d, o, id, turn, o.typed(protocol.EventDecisionOpened).Decision
}

func (d *daemon) replies(t *testing.T, id protocol.DecisionID, choice protocol.DecisionChoice, value string) error {
	t.Helper()
	_, err := d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: id, Choice: choice, Value: []byte(value)})
	return err
}

func (d *daemon) asking(t *testing.T) []protocol.Decision {
	t.Helper()
	return must[*protocol.DecisionListResult](t)(d.Decisions.List(t.Context(), &protocol.DecisionListParams{})).Data
}

func TestAskPerson(t *testing.T) {
	t.Run("runtime/K05 a call asks a person and gets answers that match its form", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var ran notes
			d, o, _, turn, first := asked(t, protocol.ReplayNever, &ran)
			if first.Kind != protocol.DecisionQuestion || first.Prompt != "Which?" || string(first.Form) != `{"type":"object","required":["n"]}` || first.Call.Name != "work" {
				t.Errorf("asked %+v", first)
			}
			if err := d.replies(t, first.ID, protocol.ChooseAnswer, `{"m":1}`); err == nil {
				t.Error("an answer was taken that does not fit")
			}
			if err := d.replies(t, first.ID, protocol.ChooseAnswer, `{"n":1}`); err != nil {
				t.Error(err)
			}
			second := o.typed(protocol.EventDecisionOpened).Decision
			if err := d.replies(t, second.ID, protocol.ChooseReject, ""); err != nil {
				t.Error(err)
			}
			if got := d.wait(t, turn); got.ToolCalls[0].Output.Text != `answer{"n":1};reject;` || got.Outcome.Text != "done" {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("runtime/K05 the deadline passes without an answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var ran notes
			d, _, _, turn, _ := asked(t, protocol.ReplayNever, &ran)
			began := time.Now()
			if got := d.wait(t, turn); got.ToolCalls[0].Output.Text != "unavailable;unavailable;" || time.Since(began) > 2*time.Hour+time.Second {
				t.Errorf("%+v after %v", got.ToolCalls, time.Since(began))
			}
		})
	})
	t.Run("runtime/K05 reliability/P28 a repeated call finds its earlier questions and answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var ran notes
			d, o, id, turn, first := asked(t, protocol.ReplaySafe, &ran)
			if err := d.replies(t, first.ID, protocol.ChooseAnswer, `{"n":1}`); err != nil {
				t.Fatal(err)
			}
			second := o.typed(protocol.EventDecisionOpened).Decision
			d = d.restart(t, nil)
			must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
			synctest.Wait()
			if all := d.asking(t); len(all) != 1 || all[0].ID != second.ID {
				t.Fatalf("open are %+v, want %s", all, second.ID)
			}
			if err := d.replies(t, second.ID, protocol.ChooseAnswer, `{"n":2}`); err != nil {
				t.Fatal(err)
			}
			if got := d.wait(t, turn); got.ToolCalls[0].Output.Text != `answer{"n":1};answer{"n":2};` || len(ran.list) != 2 {
				t.Errorf("%+v, ran %d times", got.ToolCalls, len(ran.list))
			}
		})
	})
	t.Run("runtime/K05 reliability/P28 a question of a call that is not repeated is withdrawn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var ran notes
			d, o, id, turn, q := askedTimes(t, protocol.ReplayNever, &ran, 12) // of 12, the first that is looked at is hardly the open one
			for range 11 {
				if err := d.replies(t, q.ID, protocol.ChooseAnswer, `{"n":1}`); err != nil {
					t.Fatal(err)
				}
				q = o.typed(protocol.EventDecisionOpened).Decision
			}
			d = d.restart(t, nil)
			must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
			synctest.Wait()
			all := d.asking(t)
			if len(all) != 1 || all[0].Kind != protocol.DecisionOutcome {
				t.Fatalf("open are %+v", all)
			}
			if err := d.replies(t, all[0].ID, protocol.ChooseNotHappened, ""); err != nil {
				t.Fatal(err)
			}
			if got := d.wait(t, turn); got.ToolCalls[0].Output.Failure.Code != "not_executed" || len(ran.list) != 1 {
				t.Errorf("%+v, ran %d times", got.ToolCalls, len(ran.list))
			}
			if got := must[protocol.Decision](t)(d.store.Decision(t.Context(), q.ID)); got.Answer == nil || got.Answer.Choice != protocol.ChooseCancelled {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("runtime/K05 interrupting the turn withdraws the question", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var ran notes
			d, _, _, turn, _ := asked(t, protocol.ReplayNever, &ran)
			d.interrupt(t, turn)
			if got := d.wait(t, turn); got.ToolCalls[0].Output.Status != protocol.OutputCancelled || len(d.asking(t)) != 0 {
				t.Errorf("%+v, open %+v", got.ToolCalls, d.asking(t))
			}
		})
	})
	t.Run("runtime/K05 a call without a turn cannot ask a person", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			failed := make(chan error, 1)
			d := start(t, setup{model: replies(), tools: []tool.Provider{toolFunc{name: "work", run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
				_, err := c.Host.Ask(ctx, tool.Question{Prompt: "Which?"})
				failed <- err
				return tool.Result{Output: protocol.Succeed("")}, nil
			}}}})
			must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: d.session(t), Name: "work", Args: []byte(`{}`)}))
			if err := <-failed; !errors.Is(err, tool.ErrNoTurn) {
				t.Errorf("%v", err)
			}
		})
	})
}
