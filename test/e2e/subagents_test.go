package e2e

import (
	"fmt"
	"slices"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// to is a model step for a conversation that contains a text and has so many results.
func to(user string, results int, s fakemodel.Step) fakemodel.Step {
	s.When = fakemodel.When{User: user, Results: &results}
	return s
}

type spawns struct {
	Task       string `json:"task"`
	Name       string `json:"name"`
	Capability string `json:"capability,omitempty"`
}

// team is a world whose model, when told to lead, starts three subagents, one of which runs a command.
func team(t *testing.T) *world {
	agents := fakemodel.Part{}
	for _, name := range []string{"alpha", "beta", "gamma"} {
		agents.Calls = append(agents.Calls, fakemodel.Call{Name: "spawn_agent", Args: mustArgs(spawns{name + " job", name, "peer"})})
	}
	return newWorld(t, "allow",
		to("lead", 0, step(agents)), to("lead", 3, step(says("they work"))),
		to("alpha job", 0, step(says("alpha did it"))), to("beta job", 0, step(says("beta did it"))),
		to("gamma job", 0, step(shell("printf x >> ran"))), to("gamma job", 1, step(says("gamma did it"))),
		to("has ended", 0, step(says("noted"))), to("has ended", 0, step(says("noted"))), to("has ended", 0, step(says("noted"))),
	)
}

// led is a session whose subagents are running; commands need approval.
func (w *world) led(p *peer) protocol.SessionID {
	w.t.Helper()
	ask := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: w.work, Approval: &protocol.ApprovalConfig{
		Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "shell", Action: protocol.ApproveAsk}},
	}})
	p.turn(ask.SessionID, "lead")
	return ask.SessionID
}

func (p *peer) agents(id protocol.SessionID) []protocol.Task {
	p.t.Helper()
	r := ask[protocol.TaskListResult](p, "task/list", protocol.TaskListParams{SessionID: id, Kind: protocol.TaskSubagent})
	slices.SortFunc(r.Data, func(a, b protocol.Task) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
	return r.Data
}

// noted waits until n subagents of a session have ended and the session has handled it and is idle.
// One turn may handle several.
func (p *peer) noted(id protocol.SessionID, n int) []protocol.TurnReport {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%d agents have ended", n), func() error {
		all := p.agents(id)
		if ended := slices.DeleteFunc(slices.Clone(all), func(a protocol.Task) bool { return !a.State.Final() }); len(ended) != n {
			return fmt.Errorf("subagents: %+v", all)
		}
		return nil
	})
	return p.turns(id, 2)
}

// turns waits until a session has ended n turns and is idle.
func (p *peer) turns(id protocol.SessionID, n int) []protocol.TurnReport {
	p.t.Helper()
	var r protocol.TurnListResult
	eventually(p.t, fmt.Sprintf("%d turns have ended", n), func() error {
		r = ask[protocol.TurnListResult](p, "turn/list", protocol.TurnListParams{SessionID: id})
		open := slices.ContainsFunc(r.Data, func(t protocol.TurnReport) bool { return !t.State.Terminal() })
		if len(r.Data) < n || open {
			return fmt.Errorf("%d turns", len(r.Data))
		}
		return nil
	})
	return r.Data
}

// TestThreeAgentsOutliveEverybody runs three subagents in parallel, one of which asks. Then all
// clients disconnect and the daemon dies.
func TestThreeAgentsOutliveEverybody(t *testing.T) {
	w := team(t)
	d := w.serve()
	p := w.dial("cli_gone")
	root := w.led(p)
	asked := p.event("the question is shown above", func(e protocol.Event) bool { return opened(e) && e.SessionID == root }).Decision
	p.noted(root, 2)
	eventually(t, "runtime/B11 while one asks, its task is idle", func() error {
		if all := p.agents(root); len(all) != 3 || all[2].State != protocol.TaskIdle || all[2].Spec.Subagent.SessionID != asked.SessionID {
			return fmt.Errorf("the subagents are %+v", all)
		}
		return nil
	})
	p.conn.Close()
	d.kill()
	w.serve()
	p = w.dial("cli_later")
	open := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: root}).Data
	if len(open) != 1 || open[0].ID != asked.ID || w.size("ran") != 0 {
		t.Fatalf("issue/5-5 after the restart the open decisions are %+v; the command ran %d times", open, w.size("ran"))
	}
	p.allow(open[0])
	turns := p.noted(root, 3)
	for i, a := range p.agents(root) {
		name := []string{"alpha", "beta", "gamma"}[i]
		if a.State != protocol.TaskCompleted || string(a.Outcome.Value) != `"`+name+` did it"` || a.Spec.Subagent.Agent != "/root/"+name {
			t.Errorf("runtime/B11 subagent %s is %s with %+v", name, a.State, a.Outcome)
		}
		if mine := p.turns(a.Spec.Subagent.SessionID, 1); len(mine) != 1 || mine[0].TurnID != a.Spec.Subagent.TurnID {
			t.Errorf("issue/5-5 subagent %s has the turns %+v", name, mine)
		}
	}
	if len(turns) < 3 || len(turns) > 4 || w.size("ran") != 1 { // the first two may end together
		t.Errorf("issue/5-5 the lead had %d turns, want its own, one or two while the command waits, and one at the end; the command ran %d times", len(turns), w.size("ran"))
	}
	p.booked(root, int64(len(turns)))
}

// booked checks the ledger of the lead: two model calls in its first turn, one in each other turn, and
// four of its subagents.
func (p *peer) booked(id protocol.SessionID, turns int64) {
	p.t.Helper()
	want := map[string]int64{"turn": turns + 1, "subagent": 4}
	rows := ask[protocol.UsageReadResult](p, "usage/read", protocol.UsageReadParams{SessionID: id}).Data
	for _, row := range rows {
		if row.Calls != want[row.Source] || row.Usage.Input != inputTokens*row.Calls || row.Usage.Output != outputTokens*row.Calls {
			p.t.Errorf("issue/5-5 %s: the ledger has %d calls with %+v, want %d", row.Source, row.Calls, row.Usage, want[row.Source])
		}
		delete(want, row.Source)
	}
	if len(want) > 0 {
		p.t.Errorf("issue/5-5 missing in the ledger: %v", want)
	}
}
