package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// refuse makes the store refuse each row of a table for which when holds, until the returned function is called.
func (d *daemon) refuse(t *testing.T, table, when string) (heal func()) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(d.store.Dir(), "lashd.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	do := func(statement string) {
		if _, err := db.Exec(statement); err != nil {
			t.Error(err)
		}
	}
	do("CREATE TRIGGER refuse BEFORE INSERT ON " + table + " WHEN " + when + " BEGIN SELECT RAISE(ABORT, 'refused by the test'); END")
	heal = sync.OnceFunc(func() {
		do("DROP TRIGGER refuse")
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(heal)
	return heal
}

func TestFailingCommits(t *testing.T) {
	t.Run("plugin/HC-10 an append whose commit fails changes nothing and can be retried", func(t *testing.T) {
		d, id, host := lent(t, setup{model: replies(scripted.Reply{Text: "ok"})})
		before := d.graph(t, id)
		heal := d.refuse(t, "nodes", "true")
		p := &protocol.GraphAppendParams{OperationID: "op", Nodes: summary("derived")}
		if r, err := host.Graph.AppendNodes(t.Context(), p); err == nil {
			t.Fatalf("the append is %+v, want an error", r)
		}
		if after := d.graph(t, id); after.Head != before.Head || len(after.Data) != len(before.Data) {
			t.Errorf("the head is %+v with %d nodes, was %+v with %d", after.Head, len(after.Data), before.Head, len(before.Data))
		}
		heal()
		if r := must[*protocol.GraphAppendResult](t)(host.Graph.AppendNodes(t.Context(), p)); r.Status != protocol.Appended {
			t.Errorf("the append is %s, want %s", r.Status, protocol.Appended)
		}
	})
	t.Run("plugin/HK-17 events of after-turn hooks are shown only once the turn's commit has succeeded", func(t *testing.T) {
		var d *daemon
		var heal func()
		asked := 0
		news := hooked{"a", func(r *plugin.Registrar) {
			r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) {
				switch asked++; asked {
				case 1:
					heal = d.refuse(t, "nodes", "true")
				case 3:
					heal()
				}
				return []plugin.Directive{plugin.Tell(plugin.RuntimeEvent{Kind: "custom", Name: fmt.Sprint("done ", asked)})}, nil
			})
		}}
		d = start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(news)})
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		o.over(turn)
		o.typed(protocol.EventPluginCustom)
		var shown []string
		for _, e := range o.of(protocol.EventPluginCustom) {
			shown = append(shown, e.Name)
		}
		if !slices.Equal(shown, []string{"done 3"}) {
			t.Errorf("events %q were shown, want only that of the commit that succeeded", shown)
		}
		if report := d.wait(t, turn); report.State != protocol.TurnCompleted {
			t.Errorf("the turn is %+v", report)
		}
	})
}
