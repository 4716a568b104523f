package turn

import (
	"fmt"
	"slices"
	"testing"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func TestBudgets(t *testing.T) {
	// asks returns the number of model calls of a turn whose model always calls a tool.
	asks := func(t *testing.T, m *Machine, most int, result func(...protocol.CallID) Response) int {
		for n := range most {
			for _, e := range drain(t, m) {
				if e.Kind == EffectDone {
					return n
				}
			}
			id := protocol.CallID(fmt.Sprint("call", n))
			answer(t, m, EffectModel, calls(id))
			answer(t, m, EffectTools, result(id))
		}
		return most
	}

	t.Run("runtime/T15 a bounded turn uses its whole budget", func(t *testing.T) {
		for _, n := range []int{1, 2, 7} {
			m := New(testDriver{}, bounded(n))
			if got := asks(t, m, 20, succeed); got != n {
				t.Errorf("%d calls, want %d", got, n)
			}
			if got := *m.Result().Outcome; got.Kind != protocol.OutcomeMaxTurns || got.Text != "limit" {
				t.Errorf("outcome is %+v", got)
			}
		}
	})

	t.Run("runtime/T15 an unbounded turn continues", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		if got := asks(t, m, 300, succeed); got != 300 || m.Finished() {
			t.Errorf("%d calls", got)
		}
	})

	t.Run("runtime/T15 a driver has exactly one grace iteration", func(t *testing.T) {
		var seen []bool
		d := testDriver{limit: func(View) []Action { return []Action{GraceFinal()} }}
		d.prepare = func(v View) []Action {
			seen = append(seen, v.Grace)
			return []Action{StartModel(provider.ToolsAuto, provider.OutputSpec{})}
		}
		m := New(d, bounded(2))
		if got := asks(t, m, 20, succeed); got != 3 {
			t.Errorf("%d calls, want 2 and a final one", got)
		}
		if got := *m.Result().Outcome; got.Kind != protocol.OutcomeMaxTurns || !slices.Equal(seen, []bool{false, false, true}) {
			t.Errorf("outcome %+v, grace %v", got, seen)
		}
		m = New(testDriver{reply: func(View, provider.Reply) []Action { return []Action{GraceFinal()} }}, unbounded)
		answer(t, m, EffectModel, says("one"))
		answer(t, m, EffectModel, says("two"))
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns {
			t.Errorf("outcome is %+v", got)
		}
	})

	t.Run("runtime/T15 nothing follows a grace iteration", func(t *testing.T) {
		m := New(testDriver{reply: func(v View, _ provider.Reply) []Action {
			if v.Grace {
				return []Action{Advance()}
			}
			return []Action{GraceFinal()}
		}}, unbounded)
		answer(t, m, EffectModel, says("one"))
		answer(t, m, EffectModel, says("final"))
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns || m.Iteration() != 2 {
			t.Errorf("outcome %+v in iteration %d", got, m.Iteration())
		}
	})

	t.Run("runtime/T15 a driver cannot get around the limit", func(t *testing.T) {
		for name, actions := range map[string][]Action{"nothing": nil, "advance": {Advance(), Advance()}} {
			m := New(testDriver{limit: func(View) []Action { return actions }}, bounded(2))
			if got := asks(t, m, 20, succeed); got != 2 || m.Result().Outcome.Kind != protocol.OutcomeMaxTurns {
				t.Errorf("%s: %d calls, outcome %+v", name, got, m.Result().Outcome)
			}
		}
	})

	t.Run("runtime/T16 twelve failures in a row end a turn", func(t *testing.T) {
		for budget, want := range map[int]int{0: 12, 3: 3, 20: 20} {
			cfg := unbounded
			cfg.Budget.NoProgress = budget
			m := New(testDriver{}, cfg)
			if got := asks(t, m, 50, fails); got != want {
				t.Errorf("budget %d: %d calls, want %d", budget, got, want)
			}
			r := m.Result()
			if r.Outcome.Kind != protocol.OutcomeMaxTurns || len(r.Issues) != 1 || r.Issues[0].Code != "no_progress_budget" {
				t.Errorf("budget %d: outcome %+v, issues %+v", budget, r.Outcome, r.Issues)
			}
			if err := resumable(r.Messages); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("runtime/T16 a success resets the count", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		n := 0
		mostly := func(ids ...protocol.CallID) Response {
			if n++; n%12 == 0 {
				return succeed(ids...)
			}
			return fails(ids...)
		}
		if got := asks(t, m, 100, mostly); got != 100 {
			t.Errorf("the turn ended after %d calls: %+v", got, m.Result().Outcome)
		}
	})

	t.Run("runtime/T16 failed cells and repairs count too", func(t *testing.T) {
		cfg := unbounded
		cfg.Budget.NoProgress = 4
		m := New(testDriver{reply: func(_ View, r provider.Reply) []Action {
			if r.Parts[0].Text == "repair" {
				return []Action{NoProgress(), Advance()}
			}
			return []Action{StartCode(Cell{Language: "star", Source: r.Parts[0].Text})}
		}}, cfg)
		cell := func(err string) {
			answer(t, m, EffectModel, says("code"))
			answer(t, m, EffectCode, Response{Code: &CellReply{Error: err}})
		}
		cell("bad")
		cell("bad")
		cell("")
		cell("bad")
		answer(t, m, EffectModel, says("repair"))
		cell("bad")
		answer(t, m, EffectModel, says("repair"))
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns || m.Iteration() != 7 {
			t.Errorf("outcome %+v in iteration %d", got, m.Iteration())
		}
	})
}
