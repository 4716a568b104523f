package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func carrying(factories ...plugin.Factory) func(*setup) {
	return func(s *setup) { s.plugins = factories }
}

func TestPluginState(t *testing.T) {
	t.Run("plugin/SN-01 plugin/OP-08 a plugin's state, including large artifacts, survives a restart", func(t *testing.T) {
		d := start(t, with(&keeper{}))
		id := d.session(t)
		big := strings.Repeat("bulk", 10_000)
		d.holds(t, id, "hello", big)
		d = d.restart(t, carrying(&keeper{}))
		if got := d.held(t, id, "keeper"); got.Text != "hello" || got.Bulk != big {
			t.Errorf("kept %q and %d bytes", got.Text, len(got.Bulk))
		}
	})
	t.Run("plugin/SN-04 state is captured only when it has changed", func(t *testing.T) {
		k := &keeper{}
		d := start(t, with(k))
		id := d.session(t)
		d.turn(t, id, "one")
		d.turn(t, id, "two")
		if n := seen(k, func() int { return k.captures }); n != 1 {
			t.Errorf("captured %d times in two turns without a change, want once", n)
		}
		d.holds(t, id, "x", "")
		d.turn(t, id, "three")
		if n := seen(k, func() int { return k.captures }); n != 2 {
			t.Errorf("captured %d times after a change, want twice", n)
		}
	})
	t.Run("plugin/SN-04 a failed capture keeps the stored state, is reported as an issue and is tried again", failedCapture)
	t.Run("plugin/SN-03 plugin/S-12 a plugin whose state changes during the capture is captured again", func(t *testing.T) {
		k := &keeper{restless: true}
		d := start(t, with(k))
		id := d.session(t)
		d.turn(t, id, "one")
		d.turn(t, id, "two")
		if n := seen(k, func() int { return k.captures }); n != 2 {
			t.Errorf("captured %d times, want at each boundary", n)
		}
		if got := d.plugged(t, id).Fingerprint; got == 0 {
			t.Error("no fingerprint is stored")
		}
	})
	t.Run("plugin/SN-01 replaced artifacts are deleted, and unchanged artifacts are not written again", replacedBulk)
	t.Run("plugin/SN-05 plugin/S-07 a plugin is not restored without a snapshot, and is empty if the snapshot has no state of it", blankRestore)
	t.Run("plugin/SN-06 the state of a missing plugin is kept until the plugin returns", func(t *testing.T) {
		d := start(t, with(&keeper{}))
		id := d.session(t)
		d.holds(t, id, "hello", strings.Repeat("b", 5000))
		d = d.restart(t, carrying(&keeper{id: "other"}))
		d.turn(t, id, "on")
		d = d.restart(t, carrying(&keeper{}))
		if got := d.held(t, id, "keeper"); got.Text != "hello" || len(got.Bulk) != 5000 {
			t.Errorf("came back with %q and %d bytes", got.Text, len(got.Bulk))
		}
	})
	t.Run("plugin/SN-07 plugin/S-08 the plugin gets state of another version, and rejecting it fails the open but not the session", refusedRestore)
}

func failedCapture(t *testing.T) {
	k := &keeper{}
	d := start(t, with(k))
	id := d.session(t)
	d.holds(t, id, "good", "")
	k.change(func() { k.broken = errors.New("no") })
	if r := d.holds(t, id, "better", ""); len(r.Issues) != 1 || r.Issues[0].Code != "plugin_snapshot" {
		t.Errorf("the command's issues are %+v", r.Issues)
	}
	if r := d.turn(t, id, "go"); r.State != protocol.TurnCompleted || len(r.Issues) != 1 || r.Issues[0].Code != "plugin_snapshot" {
		t.Errorf("the turn is %s with the issues %+v", r.State, r.Issues)
	}
	again := &keeper{}
	d = d.restart(t, carrying(again))
	if got := d.held(t, id, "keeper"); got.Text != "good" {
		t.Errorf("after the failures %q is stored, want the last good state", got.Text)
	}
	again.change(func() { again.broken = errors.New("no") })
	d.holds(t, id, "best", "")
	again.change(func() { again.broken = nil })
	d.turn(t, id, "go on") // nothing has changed since the capture
	d = d.restart(t, carrying(&keeper{}))
	if got := d.held(t, id, "keeper"); got.Text != "best" {
		t.Errorf("%q is stored: the capture that failed was not tried again", got.Text)
	}
}

func replacedBulk(t *testing.T) {
	d := start(t, with(&keeper{}))
	id := d.session(t)
	first, second := strings.Repeat("1", 9000), strings.Repeat("2", 9000)
	d.holds(t, id, "a", first)
	d.holds(t, id, "b", first)
	if _, ok := d.blob(t, protocol.DigestOf([]byte(first))); !ok {
		t.Fatal("the bulk is not there")
	}
	fork := d.fork(t, id, "").SessionID
	d.holds(t, id, "c", second)
	if _, ok := d.blob(t, protocol.DigestOf([]byte(first))); !ok {
		t.Error("an artifact of the fork was deleted")
	}
	d.holds(t, fork, "d", second)
	if _, ok := d.blob(t, protocol.DigestOf([]byte(first))); ok {
		t.Error("an artifact that no state refers to is still stored")
	}
	if got, _ := d.blob(t, protocol.DigestOf([]byte(second))); got != second {
		t.Error("the new bulk is not there")
	}
}

func blankRestore(t *testing.T) {
	k := &keeper{}
	d := start(t, with(k))
	fresh, used := d.session(t), d.session(t)
	d.held(t, fresh, "keeper")
	if got := seen(k, func() []string { return k.restored }); len(got) != 0 {
		t.Errorf("without a snapshot %q was restored", got)
	}
	d.holds(t, used, "x", "")
	k, late := &keeper{}, &keeper{id: "late"}
	d = d.restart(t, carrying(k, late))
	d.held(t, used, "late")
	if got := seen(late, func() []string { return late.restored }); !slices.Equal(got, []string{"1"}) {
		t.Errorf("the plugin that is new was restored with %q, want without a state", got)
	}
	if got := seen(k, func() []string { return k.restored }); !slices.Equal(got, []string{`1 "x"`}) {
		t.Errorf("restored %q", got)
	}
}

func refusedRestore(t *testing.T) {
	d := start(t, with(&keeper{}))
	id := d.session(t)
	d.holds(t, id, "old", "")
	k := &keeper{version: "2", refuses: errors.New("too old")}
	d = d.restart(t, carrying(k))
	_, err := d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id})
	if e, ok := errors.AsType[*plugin.HookError](err); !ok || e.Plugin != "keeper" || e.Hook != plugin.HookRestore {
		t.Errorf("opened with %v", err)
	}
	if r := d.turn(t, id, "go"); r.State != protocol.TurnFailed {
		t.Errorf("a turn without plugins is %s", r.State)
	}
	k.change(func() { k.refuses = nil })
	if got := d.held(t, id, "keeper"); got.Text != "old" {
		t.Errorf("opened again with %q", got.Text)
	}
	if got := seen(k, func() string { return k.restored[0] }); got != `1 "old"` {
		t.Errorf("handed over: %q", got)
	}
}

func TestForkedState(t *testing.T) {
	t.Run("plugin/SN-08 a fork starts with the state at the fork, and both change separately afterwards", func(t *testing.T) {
		d := start(t, with(&keeper{}))
		id := d.session(t)
		d.holds(t, id, "shared", strings.Repeat("s", 5000))
		fork := d.fork(t, id, "").SessionID
		if got := d.held(t, fork, "keeper"); got.Text != "shared" || len(got.Bulk) != 5000 {
			t.Fatalf("the fork has %q and %d bytes", got.Text, len(got.Bulk))
		}
		d.holds(t, fork, "mine", "")
		d.holds(t, id, "yours", "")
		if a, b := d.held(t, id, "keeper").Text, d.held(t, fork, "keeper").Text; a != "yours" || b != "mine" {
			t.Errorf("source %q, fork %q", a, b)
		}
	})
	t.Run("plugin/SN-08 a fork includes state that a plugin gathered since the last capture", func(t *testing.T) {
		var mine []*kept
		d := start(t, with(&keeper{register: func(k *kept, _ *plugin.Registrar) { mine = append(mine, k) }}))
		id := d.session(t)
		d.holds(t, id, "stored", "")
		mine[len(mine)-1].set("by itself", "")
		if got := d.held(t, d.fork(t, id, "").SessionID, "keeper"); got.Text != "by itself" {
			t.Errorf("the fork has %q", got.Text)
		}
	})
}

func TestNamedSnapshots(t *testing.T) {
	t.Run("a snapshot restores head, plugins and tools and leaves history unchanged", restoredSnapshot)
	t.Run("a snapshot that a plugin rejects changes nothing", func(t *testing.T) {
		k := &keeper{}
		d := start(t, with(k))
		id := d.session(t)
		d.holds(t, id, "then", "")
		name := &protocol.SnapshotMutationParams{SessionID: id, Name: "s"}
		must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), name))
		d.holds(t, id, "now", "")
		before := d.graph(t, id).Head
		k.change(func() { k.refuses = errors.New("no") })
		if _, err := d.Snapshots.Restore(t.Context(), name); !errors.As(err, new(*plugin.HookError)) {
			t.Errorf("restored with %v", err)
		}
		if got := d.held(t, id, "keeper").Text; got != "now" || d.graph(t, id).Head != before {
			t.Errorf("after the refusal there is %q", got)
		}
	})
	t.Run("during a turn a snapshot has the state from before it, and no snapshot can be restored", besideTurn)
}

func restoredSnapshot(t *testing.T) {
	d := start(t, with(&keeper{register: func(_ *kept, r *plugin.Registrar) { r.Tools().Add(says("extra", "x")) }}))
	id := d.session(t)
	d.turn(t, id, "one")
	d.holds(t, id, "then", strings.Repeat("t", 5000))
	name := &protocol.SnapshotMutationParams{SessionID: id, Name: "s"}
	name.IdempotencyKey = "k"
	made := must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), name))
	if again := must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), name)); !again.Duplicate || again.Snapshot != made.Snapshot {
		t.Errorf("the same again is %+v", again)
	}
	d.holds(t, id, "now", "")
	d.turn(t, id, "two")
	must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"extra": false}}))
	left := d.graph(t, id).Head.Leaf
	back := must[*protocol.SnapshotRestoreResult](t)(d.Snapshots.Restore(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "s"}))
	if head := d.graph(t, id).Head; head != back.Head || head.Leaf != made.Snapshot.NodeID || back.Pinned != left {
		t.Errorf("restored to %+v, head %+v, left %s", back, head, left)
	}
	for range 2 { // before and after a restart
		if got := d.held(t, id, "keeper"); got.Text != "then" || len(got.Bulk) != 5000 {
			t.Errorf("restored %q and %d bytes", got.Text, len(got.Bulk))
		}
		if !member(t, d, id, "extra") {
			t.Error("the tool that was left out later is still left out")
		}
		d = d.restart(t, nil)
	}
	d.turn(t, id, "three")
	if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"one", "ok", "three", "ok"}) {
		t.Errorf("history is %q", got)
	}
	if got := said(d.graph(t, d.fork(t, id, left).SessionID).Data); !slices.Contains(got, "two") {
		t.Errorf("the pinned branch is %q", got)
	}
	must[*protocol.SeqResult](t)(d.Snapshots.Delete(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "s"}))
	if all := must[*protocol.SnapshotListResult](t)(d.Snapshots.List(t.Context(), &protocol.SessionParams{SessionID: id})); len(all.Data) != 0 {
		t.Errorf("left: %+v", all.Data)
	}
}

func member(t *testing.T, d *daemon, id protocol.SessionID, name string) bool {
	t.Helper()
	all := must[*protocol.ToolListResult](t)(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}))
	i := slices.IndexFunc(all.Data, func(r protocol.ToolRecord) bool { return r.Name == name })
	return i >= 0 && all.Data[i].Member
}

func besideTurn(t *testing.T) {
	g := newGate("work")
	s := with(&keeper{})
	s.model, s.tools = replies(calls("work")), []tool.Provider{g}
	d := start(t, s)
	id := d.session(t)
	d.holds(t, id, "then", "")
	leaf := d.graph(t, id).Head.Leaf
	turn := d.begin(t, id, "go").TurnID
	<-g.called
	name := &protocol.SnapshotMutationParams{SessionID: id, Name: "s"}
	if made := must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), name)); made.Snapshot.NodeID != leaf {
		t.Errorf("the snapshot is at %s, want %s", made.Snapshot.NodeID, leaf)
	}
	if _, err := d.Snapshots.Restore(t.Context(), name); !errors.As(err, new(*engine.TurnActiveError)) {
		t.Errorf("restored beside a turn: %v", err)
	}
	close(g.open)
	d.wait(t, turn)
	must[*protocol.SnapshotRestoreResult](t)(d.Snapshots.Restore(t.Context(), name))
	if got := d.graph(t, id).Head.Leaf; got != leaf {
		t.Errorf("restored to %s, want %s", got, leaf)
	}
}
