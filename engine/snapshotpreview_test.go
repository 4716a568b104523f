package engine_test

import (
	"errors"
	"slices"
	"testing"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestSnapshotPreview(t *testing.T) {
	t.Run("issue/6-1 a preview shows what a restore does, without changing anything", previewedRestore)
	t.Run("issue/6-1 a preview shows the rewound history that a restore brings back", func(t *testing.T) {
		d := start(t, with(&keeper{}))
		id := d.session(t)
		root := d.graph(t, id).Head.Leaf
		d.turn(t, id, "one")
		d.named(t, id, "s")
		must[*protocol.SessionRewindResult](t)(d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToNode: root}))
		d.turn(t, id, "other")
		p := d.previewed(t, id, "s")
		if now, then := itemTexts(p.Now), itemTexts(p.Then); p.Now.Nodes != 2 || p.Then.Nodes != 2 || !slices.Equal(now, []string{"other", "ok"}) || !slices.Equal(then, []string{"one", "ok"}) {
			t.Errorf("%d nodes %q would be removed, %d nodes %q would return", p.Now.Nodes, now, p.Then.Nodes, then)
		}
	})
	t.Run("issue/6-1 a preview includes state that a plugin gathered since the last commit", func(t *testing.T) {
		var mine []*kept
		d := start(t, with(&keeper{register: func(k *kept, _ *plugin.Registrar) { mine = append(mine, k) }}))
		id := d.session(t)
		d.holds(t, id, "stored", "")
		d.named(t, id, "s")
		mine[len(mine)-1].set("by itself", "")
		if now := stateOf(d.previewed(t, id, "s").Now, "keeper"); now != `"by itself"` {
			t.Errorf("the plugin has %s", now)
		}
	})
	t.Run("issue/6-1 a preview fails where a restore would fail", refusedPreview)
	t.Run("issue/6-1 a list of snapshots has the size of each, and a deletion is reported as an event", func(t *testing.T) {
		d := start(t, with(&keeper{}))
		id := d.session(t)
		d.turn(t, id, "one")
		d.named(t, id, "bare")
		d.holds(t, id, "x", string(make([]byte, 9000)))
		d.named(t, id, "rich")
		all := must[*protocol.SnapshotListResult](t)(d.Snapshots.List(t.Context(), &protocol.SessionParams{SessionID: id})).Data
		if len(all) != 2 || all[0].Nodes != 2 || all[1].Nodes != 2 || all[0].Bytes >= 9000 || all[1].Bytes < 9000 {
			t.Errorf("there are %+v", all)
		}
		o := d.observe(t, id)
		must[*protocol.SeqResult](t)(d.Snapshots.Delete(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "rich"}))
		e := o.until(func(e protocol.Event) bool { return e.Type == protocol.EventSnapshotDeleted })
		if e.Name != "rich" {
			t.Errorf("told of %q", e.Name)
		}
	})
}

func previewedRestore(t *testing.T) {
	d := start(t, with(&keeper{register: func(_ *kept, r *plugin.Registrar) { r.Tools().Add(says("extra", "x")) }}))
	id := d.session(t)
	d.turn(t, id, "one")
	d.holds(t, id, "then", "")
	d.named(t, id, "s")
	then := d.graph(t, id).Head.Leaf
	d.holds(t, id, "now", "")
	d.turn(t, id, "two")
	must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"extra": false}}))
	before := d.graph(t, id).Head
	p := d.previewed(t, id, "s")
	if now, then := stateOf(p.Now, "keeper"), stateOf(p.Then, "keeper"); now != `"now"` || then != `"then"` {
		t.Errorf("the plugin has %s, and would have %s", now, then)
	}
	if p.Now.NodeID != before.Leaf || p.Then.NodeID != then || p.Now.Nodes != 2 || p.Then.Nodes != 0 || !slices.Equal(itemTexts(p.Now), []string{"two", "ok"}) {
		t.Errorf("of history %+v would go", p.Now)
	}
	if len(p.Now.Tools.Tools) != 1 || len(p.Then.Tools.Tools) != 0 {
		t.Errorf("tools are %+v, and would be %+v", p.Now.Tools, p.Then.Tools)
	}
	if got := d.held(t, id, "keeper"); got.Text != "now" || d.graph(t, id).Head != before || member(t, d, id, "extra") {
		t.Errorf("after the preview the plugin has %q, the head is %+v", got.Text, d.graph(t, id).Head)
	}
	must[*protocol.SnapshotRestoreResult](t)(d.Snapshots.Restore(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "s"}))
	again := d.previewed(t, id, "s")
	if got := stateOf(again.Now, "keeper"); got != stateOf(p.Then, "keeper") || again.Now.NodeID != p.Then.NodeID || again.Now.Nodes+again.Then.Nodes != 0 {
		t.Errorf("restored to %+v, the preview said %+v", again.Now, p.Then)
	}
}

func refusedPreview(t *testing.T) {
	g := newGate("work")
	k := &keeper{}
	s := with(k)
	s.model, s.tools = replies(calls("work")), []tool.Provider{g}
	d := start(t, s)
	id := d.session(t)
	d.holds(t, id, "then", "")
	d.named(t, id, "s")
	params := &protocol.SnapshotParams{SessionID: id, Name: "s"}
	turn := d.begin(t, id, "go").TurnID
	<-g.called
	if _, err := d.Snapshots.Preview(t.Context(), params); !errors.As(err, new(*engine.TurnActiveError)) {
		t.Errorf("beside a turn: %v", err)
	}
	close(g.open)
	d.wait(t, turn)
	k.change(func() { k.refuses = errors.New("no") })
	if _, err := d.Snapshots.Preview(t.Context(), params); !errors.As(err, new(*plugin.HookError)) {
		t.Errorf("with a plugin that refuses the state: %v", err)
	}
}

func (d *daemon) named(t *testing.T, id protocol.SessionID, name string) {
	t.Helper()
	must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: name}))
}

func (d *daemon) previewed(t *testing.T, id protocol.SessionID, name string) *protocol.SnapshotPreviewResult {
	t.Helper()
	return must[*protocol.SnapshotPreviewResult](t)(d.Snapshots.Preview(t.Context(), &protocol.SnapshotParams{SessionID: id, Name: name}))
}

func itemTexts(side protocol.SnapshotSide) (all []string) {
	for _, item := range side.Items {
		all = append(all, item.Text)
	}
	return all
}

func stateOf(side protocol.SnapshotSide, id string) string {
	for _, p := range side.Plugins {
		if p.Plugin == id {
			return string(p.State)
		}
	}
	return ""
}
