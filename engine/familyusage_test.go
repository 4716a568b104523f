package engine_test

import (
	"math"
	"slices"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// spent is a ledger as lines of source, input, output and calls.
type spent struct {
	source        string
	input, output int64
	calls         int64
}

func (d *daemon) ledger(t *testing.T, id protocol.SessionID) (rows []spent) {
	t.Helper()
	usage := must[*protocol.UsageReadResult](t)(d.Completions.Usage(t.Context(), &protocol.UsageReadParams{SessionID: id}))
	var in, out int64
	for _, r := range usage.Data {
		rows = append(rows, spent{r.Source, r.Usage.Input, r.Usage.Output, r.Calls})
		in, out = in+r.Usage.Input, out+r.Usage.Output
	}
	if usage.Total.Input != in || usage.Total.Output != out {
		t.Errorf("the total is %+v, the lines are %+v", usage.Total, rows)
	}
	return rows
}

func (d *daemon) owes(t *testing.T, when string, id protocol.SessionID, want ...spent) {
	t.Helper()
	if got := d.ledger(t, id); !slices.Equal(got, want) {
		t.Errorf("%s, %q has the ledger %+v, want %+v", when, id, got, want)
	}
}

// worker makes a session that works for another.
func (d *daemon) worker(t *testing.T, parent protocol.SessionID, label string) protocol.SessionID {
	t.Helper()
	p := plugin.NewChild(protocol.SessionStart{})
	p.Cwd, p.Relation.Parent, p.UsageLabel = t.TempDir(), parent, label
	return must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), p)).SessionID
}

func TestUsageOfChildren(t *testing.T) {
	answers := func() setup {
		return setup{model: replies(scripted.Reply{Text: "ok", Usage: &protocol.Usage{Input: 100, Output: 10}})}
	}
	t.Run("plugin/HC-08 invalid usage reported for a child does not corrupt other ledgers", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok", Usage: &protocol.Usage{Input: math.MaxInt64, Output: 10}})})
		root := d.session(t)
		liar, other := d.worker(t, root, "work"), d.worker(t, root, "work")
		d.turn(t, liar, "go")
		d.turn(t, other, "go")
		const most = 1_000_000_000_000
		d.owes(t, "after two lies", root, spent{"work", 2 * most, 20, 2})
		d.owes(t, "over all", "", spent{"turn", 2 * most, 20, 2})
	})
	t.Run("plugin/HC-08 a child's usage appears in its own ledger and under its label in the parent's, and counts once in total", func(t *testing.T) {
		d := start(t, answers())
		root := d.session(t)
		child, plain := d.worker(t, root, "research"), d.worker(t, root, "")
		below := d.worker(t, child, "lookup")
		for _, id := range []protocol.SessionID{root, child, child, plain, below} {
			d.turn(t, id, "go")
		}
		d = d.restart(t, nil)
		d.owes(t, "after all turns", below, spent{"turn", 100, 10, 1})
		d.owes(t, "after all turns", child, spent{"lookup", 100, 10, 1}, spent{"turn", 101, 11, 2})
		d.owes(t, "after all turns", plain, spent{"turn", 100, 10, 1})
		d.owes(t, "after all turns", root, spent{"child", 100, 10, 1}, spent{"research", 201, 21, 3}, spent{"turn", 100, 10, 1})
		d.owes(t, "after all turns", "", spent{"turn", 401, 41, 5})
		remove := func(id protocol.SessionID) {
			must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		}
		remove(child)
		d.turn(t, below, "more")
		d.owes(t, "after the child is gone", root, spent{"child", 100, 10, 1}, spent{"research", 202, 22, 4}, spent{"turn", 100, 10, 1})
		d.owes(t, "after the child is gone", "", spent{"research", 101, 11, 2}, spent{"turn", 301, 31, 4})
		remove(root)
		d.turn(t, below, "still more")
		d.owes(t, "after the root is gone", "", spent{"turn", 202, 22, 4})
	})
	t.Run("plugin/HC-08 usage is recorded while the turn runs and at its end, and not twice after a restart", func(t *testing.T) {
		g := newGate("work")
		g.contract.Replay = protocol.ReplaySafe
		model := replies(calls("work"), calls("work"), scripted.Reply{Text: "done", Usage: &protocol.Usage{Input: 3, Output: 2}})
		d := start(t, setup{model: model, tools: []tool.Provider{g}})
		root := d.session(t)
		child := d.worker(t, root, "research")
		turn := d.begin(t, child, "go").TurnID
		<-g.called
		d.owes(t, "during the first batch", root, spent{"research", 10, 5, 1})
		d.owes(t, "during the first batch", child, spent{"turn", 10, 5, 1})
		d = d.restart(t, nil)
		<-g.called
		d.owes(t, "after the restart", root, spent{"research", 10, 5, 1})
		g.open <- struct{}{}
		<-g.called
		d.owes(t, "during the second batch", root, spent{"research", 20, 10, 2})
		close(g.open)
		report := d.wait(t, turn)
		d.owes(t, "at the end", root, spent{"research", 23, 12, 3})
		if report.Usage.Input != 23 || report.Usage.Output != 12 {
			t.Errorf("the turn has used %+v", report.Usage)
		}
	})
}
