package plugintest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/turn"
)

// captured captures what changed, and confirms that it was stored. It returns an empty change if nothing did.
func (b *bench) captured() plugin.ExecutionChange {
	b.t.Helper()
	x, err := b.CaptureExecution(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if x == nil {
		return plugin.ExecutionChange{}
	}
	x.Stored()
	return x.ExecutionChange
}

// changes checks the names of the globals of a change.
func (b *bench) changes(c plugin.ExecutionChange, changed, removed []string) {
	b.t.Helper()
	if got := slices.Sorted(maps.Keys(c.Changed)); !slices.Equal(got, changed) || !slices.Equal(c.Removed, removed) {
		b.t.Errorf("the capture has %q and removes %q, want %q and %q", got, c.Removed, changed, removed)
	}
}

// lists checks the names of all globals.
func (b *bench) lists(want ...string) {
	b.t.Helper()
	all, err := b.Globals(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	got := []string{}
	for _, g := range all {
		got = append(got, g.Name)
		if g.Type == "" {
			b.t.Errorf("the global %s has no type", g.Name)
		}
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("the globals are %q, want %q", got, want)
	}
}

// reports checks which globals a reply says that its cell changed.
func (b *bench) reports(r turn.CellReply, want ...string) {
	b.t.Helper()
	if !slices.Equal(r.Changed, want) {
		b.t.Errorf("the reply says that %q changed, want %q", r.Changed, want)
	}
}

// keeps checks that later cells see the globals of earlier ones, and that lashd does.
func (k *executorKit) keeps(t *testing.T) {
	b := k.open(t)
	b.reports(b.succeeds(k.Sources.Set), "kept", "other")
	b.reports(b.wants(k.Sources.Get, "[1]"))
	b.captured()
	b.lists("kept", "other")
	b.reports(b.succeeds(k.Sources.Change), "kept")
	b.wants(k.Sources.Get, "[1,2]")
	if k.Sources.Remove != "" {
		b.reports(b.succeeds(k.Sources.Remove), "other")
		b.captured()
		b.lists("kept")
	}
}

// captures checks that a capture has exactly what changed since the last stored one.
func (k *executorKit) captures(t *testing.T) {
	b := k.open(t)
	b.succeeds(k.Sources.Set)
	b.changes(b.captured(), []string{"kept", "other"}, nil)
	b.wants(k.Sources.Get, "[1]")
	b.changes(b.captured(), nil, nil)
	b.succeeds(k.Sources.Change)
	b.changes(b.captured(), []string{"kept"}, nil)
	if k.Sources.Remove != "" {
		b.succeeds(k.Sources.Remove)
		b.changes(b.captured(), nil, []string{"other"})
	}
}

// repeats checks that a change stays part of captures until one of them is stored. Otherwise a commit that fails would lose it.
func (k *executorKit) repeats(t *testing.T) {
	b := k.open(t)
	b.succeeds(k.Sources.Set)
	if x, err := b.CaptureExecution(t.Context()); err != nil || x == nil {
		t.Fatalf("captured %v, %v", x, err)
	}
	b.succeeds(k.Sources.Change)
	all := b.captured()
	b.changes(all, []string{"kept", "other"}, nil)
	again := k.open(t)
	again.restored(all.Changed)
	again.wants(k.Sources.Get, "[1,2]")
}

// restored restores values.
func (b *bench) restored(values map[string][]byte) {
	b.t.Helper()
	if err := b.RestoreExecution(b.t.Context(), values); err != nil {
		b.t.Fatal(err)
	}
}

// restores checks that captured globals work in another process, and count as stored there. This is what happens after a restart of
// the daemon, in a fork, and after the process has ended.
func (k *executorKit) restores(t *testing.T) {
	b := k.open(t)
	b.succeeds(k.Sources.Set)
	values := b.captured().AppliedTo(nil)
	b.succeeds(k.Sources.Change)
	if k.Sources.Define != "" {
		b.succeeds(k.Sources.Define)
	}
	values = b.captured().AppliedTo(values)
	again := k.open(t)
	again.restored(values)
	again.wants(k.Sources.Get, "[1,2]")
	again.wants(k.Sources.Other, "2")
	if k.Sources.Use != "" {
		again.wants(k.Sources.Use, "42")
	}
	again.changes(again.captured(), nil, nil)
	again.lists(slices.Sorted(maps.Keys(values))...)
	again.succeeds(k.Sources.Change)
	again.wants(k.Sources.Get, "[1,2,2]")
}

// resets checks that a restore replaces all globals, also those of a running process.
func (k *executorKit) resets(t *testing.T) {
	b := k.open(t)
	b.succeeds(k.Sources.Set)
	values := b.captured().AppliedTo(nil)
	b.succeeds(k.Sources.Change)
	b.restored(map[string][]byte{"kept": values["kept"]})
	b.wants(k.Sources.Get, "[1]")
	if r := b.execute(k.Sources.Other); r.Error == "" {
		t.Errorf("%s\nhas the value %s, although the global was not restored", k.Sources.Other, r.Value)
	}
	b.captured()
	b.lists("kept")
	b.restored(nil)
	if r := b.execute(k.Sources.Get); r.Error == "" {
		t.Errorf("%s\nhas the value %s, although the executor was reset", k.Sources.Get, r.Value)
	}
}

// names checks that a global that cannot be saved is reported with a reason, and that the others are saved.
func (k *executorKit) names(t *testing.T) {
	b := k.open(t)
	r := b.succeeds(k.Sources.Unsaved)
	if len(r.Unsaved) != 1 || r.Unsaved[0].Name != "unsaved" || r.Unsaved[0].Reason == "" {
		t.Errorf("unsaved is %+v, want the global unsaved with a reason", r.Unsaved)
	}
	again := k.open(t)
	again.restored(b.captured().AppliedTo(nil))
	again.wants(k.Sources.Good, "3")
}

// stops runs a cell, cancels it once it calls a tool, and checks that it returns soon and leaves the globals as they were. The cell
// must have ended when Execute returns: the next cell of a person who stopped a turn can follow at once.
func (k *executorKit) stops(t *testing.T, source string) {
	b := k.open(t)
	b.succeeds(k.Sources.Set)
	b.captured()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call, done := b.complete(plugin.CodeCall{Source: source}), make(chan error, 1)
	go func() {
		_, err := b.Execute(ctx, call, b.host)
		done <- err
	}()
	select {
	case <-b.host.called:
	case err := <-done:
		t.Fatalf("%s\nended before it called a tool: %v", source, err)
	}
	cancel()
	select {
	case err := <-done:
		if errors.As(err, new(*plugin.AbandonedError)) {
			t.Fatal(err)
		}
	case <-time.After(k.Soon):
		t.Fatalf("%s\nstill runs %v after it was cancelled", source, k.Soon)
	}
	b.unchanged(k)
}

// unchanged checks that the globals are those of Set, and that there is nothing to store.
func (b *bench) unchanged(k *executorKit) {
	b.t.Helper()
	b.wants(k.Sources.Get, "[1]")
	b.changes(b.captured(), nil, nil)
}

// cancels checks that a cell that runs without end can be cancelled.
func (k *executorKit) cancels(t *testing.T) { k.stops(t, k.Sources.Endless) }

// cancelsCall checks that a cell can be cancelled while it waits for a tool.
func (k *executorKit) cancelsCall(t *testing.T) { k.stops(t, k.Sources.Wait) }

// limits checks that a cell that exceeds a limit fails, and that the next one works with the globals from before it. The error is part
// of the reply, even if the executor had to end a process.
func (k *executorKit) limits(t *testing.T) {
	b := k.open(t)
	b.succeeds(k.Sources.Set)
	b.captured()
	for _, source := range k.Sources.Exceed {
		if r := b.execute(source); r.Error == "" {
			t.Errorf("%s\nis not an error", source)
		}
		b.unchanged(k)
	}
}
