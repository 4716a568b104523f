package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// follower is a protocol that gets new nodes, and rejects them or waits if a test asks for it.
type follower struct {
	opened
	during func() // runs while it gets nodes
}

func (f *follower) callbacks(plugin.BuildContext) plugin.ProtocolSession {
	return plugin.ProtocolSession{
		Restore: func(_ context.Context, v *plugin.View) error { return f.at("restore " + view(v)) },
		AppendNodes: func(_ context.Context, nodes []protocol.NodeBody) error {
			for _, n := range nodes {
				if n.Plugin != nil {
					f.add("told of " + n.Plugin.Plugin + " " + n.Plugin.Type)
				} else {
					f.add("told of " + n.Message.Parts[0].Text)
				}
			}
			if f.during != nil {
				f.during()
			}
			return f.at("told")
		},
	}
}

// view is the last that was said in a session.
func view(v *plugin.View) string {
	if len(v.Messages()) == 0 {
		return "nothing"
	}
	return v.Messages()[len(v.Messages())-1].Parts[0].Text
}

func (f *follower) setup(more ...hooked) setup {
	s := with()
	s.plugins = append(s.plugins, plugins(more...)...)
	s.driver = scheme{callbacks: f.callbacks}
	return s
}

func (d *daemon) appendText(t *testing.T, id protocol.SessionID, text string) error {
	t.Helper()
	_, err := d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: summary(text)})
	return err
}

func TestAnnouncedAppends(t *testing.T) {
	noting := hooked{"notes", func(r *plugin.Registrar) {
		r.Operations().Command(protocol.OperationInfo{Name: "note"}, gives(plugin.OperationResult{Events: []protocol.PluginNode{{Type: "noted", Body: []byte(`1`)}}}))
	}}
	sums := compactor("sum", 1, func(*plugin.CompactRequest) ([]protocol.NodeBody, error) { return summary("so far"), nil })
	t.Run("plugin/PR-01 the protocol sees appended nodes before they are stored, once the session's plugins are open", func(t *testing.T) {
		f := &follower{}
		d := start(t, f.setup(noting, sums))
		id := d.session(t)
		if err := d.appendText(t, id, "before it is open"); err != nil {
			t.Fatal(err)
		}
		d.turn(t, id, "go")
		before := len(d.graph(t, id).Data)
		f.during = func() {
			if n := len(d.graph(t, id).Data); n != before {
				t.Errorf("history has %d nodes when the protocol gets the new ones, %d before", n, before)
			}
		}
		p := &protocol.GraphAppendParams{SessionID: id, Nodes: summary("by the way"), OperationID: "op"}
		for range 2 {
			must[*protocol.GraphAppendResult](t)(d.History.Append(t.Context(), p))
		}
		before++
		must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), d.operation(id, "note")))
		before++
		must[*protocol.SessionCompactResult](t)(d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}))
		want := []string{"restore before it is open", "told of by the way", "told", "told of notes noted", "told", "told of so far", "told"}
		if got := f.all(); !slices.Equal(got, want) {
			t.Errorf("it got\n%q, want\n%q", got, want)
		}
	})
	t.Run("plugin/PR-01 rejected nodes are not added, whoever sends them", func(t *testing.T) {
		f := &follower{opened: opened{fails: map[string]error{"told": errors.New("not that")}}}
		d := start(t, f.setup(noting, sums))
		id := d.session(t)
		d.turn(t, id, "go")
		before := d.graph(t, id).Head
		_, noted := d.Operations.Command(t.Context(), d.operation(id, "note"))
		_, compacted := d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id})
		for what, err := range map[string]error{"append": d.appendText(t, id, "x"), "command": noted, "compaction": compacted} {
			if e, ok := errors.AsType[*plugin.HookError](err); !ok || e.Plugin != "scheme" || e.Hook != plugin.HookProtocol {
				t.Errorf("%s: %v", what, err)
			}
		}
		if after := d.graph(t, id).Head; after != before {
			t.Errorf("the head was %+v, and is %+v", before, after)
		}
		f.mend()
		if err := d.appendText(t, id, "x"); err != nil {
			t.Error(err)
		}
		if report := d.turn(t, id, "go on"); report.State != protocol.TurnCompleted {
			t.Errorf("the next turn ended as %s", report.State)
		}
	})
	t.Run("plugin/PR-02 a restore follows announced nodes that were not stored", func(t *testing.T) {
		f := &follower{}
		d := start(t, f.setup())
		id := d.session(t)
		d.turn(t, id, "go")
		left := d.graph(t, id).Head.Leaf
		if err := d.appendText(t, id, "one"); err != nil {
			t.Fatal(err)
		}
		base := d.graph(t, id).Head.Leaf
		must[*protocol.SessionRewindResult](t)(d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToNode: left}))
		stale := must[*protocol.GraphAppendResult](t)(d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: summary("two"), RequiresAncestorNodeID: base}))
		if stale.Status != protocol.StaleBranch {
			t.Fatalf("%+v", stale)
		}
		want := []string{"restore nothing", "told of one", "told", "told of two", "told", "restore ok"}
		if got := f.all(); !slices.Equal(got, want) {
			t.Errorf("it got\n%q, want\n%q", got, want)
		}
	})
	t.Run("plugin/PR-02 a protocol that fails to restore is opened again", func(t *testing.T) {
		f := &follower{}
		d := start(t, f.setup())
		id := d.session(t)
		d.turn(t, id, "go")
		f.during = func() {
			f.mu.Lock()
			f.fails = map[string]error{"restore ok": errors.New("no")}
			f.mu.Unlock()
		}
		stale := must[*protocol.GraphAppendResult](t)(d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: summary("x"), RequiresAncestorNodeID: "nod_none"}))
		if stale.Status != protocol.StaleBranch {
			t.Fatalf("%+v", stale)
		}
		f.mend()
		d.turn(t, id, "go on")
		want := []string{"restore nothing", "told of x", "told", "restore ok", "restore ok"}
		if got := f.all(); !slices.Equal(got, want) {
			t.Errorf("it got\n%q, want\n%q", got, want)
		}
	})
	t.Run("plugin/PR-01 a protocol that does not answer fails the append and blocks nothing else", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			f := &follower{opened: opened{waits: map[string]chan struct{}{"told": hang}}}
			s := f.setup()
			g := newGate("work")
			s.model, s.tools = replies(calls("work"), scripted.Reply{Text: "done"}), []tool.Provider{g}
			d := start(t, s)
			id := d.session(t)
			turn := d.begin(t, id, "go").TurnID
			<-g.called
			began := time.Now()
			failed := later(func() (struct{}, error) { return struct{}{}, d.appendText(t, id, "x") })
			synctest.Wait()
			close(g.open)
			if report := d.wait(t, turn); report.State != protocol.TurnCompleted || time.Since(began) > time.Second {
				t.Errorf("after %v the turn ended as %s", time.Since(began), report.State)
			}
			if err := <-failed; !errors.Is(err, workgroup.ErrSlowPlugin) || time.Since(began) > 11*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			close(hang)
			f.mend()
			synctest.Wait()
			if err := d.appendText(t, id, "y"); err != nil {
				t.Error(err)
			}
			if got := said(d.graph(t, id).Data); slices.Contains(got, "x") || !slices.Contains(got, "y") {
				t.Errorf("history has %q", got)
			}
		})
	})
	t.Run("plugin/PR-01 announcements come in commit order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			patience := atomic.Int64{}
			patience.Store(5)
			f := &follower{during: func() { time.Sleep(time.Duration(patience.Add(-1)) * time.Second) }}
			d := start(t, f.setup())
			id := d.session(t)
			d.turn(t, id, "go")
			var all []<-chan error
			for _, text := range []string{"a", "b", "c", "d"} {
				all = append(all, later(func() (struct{}, error) { return struct{}{}, d.appendText(t, id, text) }))
			}
			for _, done := range all {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			var told []string
			for _, note := range f.all() {
				if text, ok := strings.CutPrefix(note, "told of "); ok {
					told = append(told, text)
				}
			}
			if got := said(d.graph(t, id).Data)[2:]; !slices.Equal(got, told) {
				t.Errorf("told %q, history has %q", told, got)
			}
		})
	})
}
