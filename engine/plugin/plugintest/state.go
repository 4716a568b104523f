package plugintest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
)

// capture returns the state of the session's plugins.
func capture(t *testing.T, s *plugin.Session) plugin.Snapshot {
	t.Helper()
	snap, err := s.Capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// restore restores snap and returns the resulting state, without revisions: those may grow.
func restore(t *testing.T, s *plugin.Session, snap plugin.Snapshot) map[string]plugin.Entry {
	t.Helper()
	if unknown, err := s.Restore(t.Context(), snap); err != nil || len(unknown) > 0 {
		t.Fatalf("restore: %v, unknown entries %q", err, unknown)
	}
	return state(capture(t, s))
}

// state returns the entries of a snapshot with their revisions set to zero, so that states can be compared.
func state(snap plugin.Snapshot) map[string]plugin.Entry {
	out := map[string]plugin.Entry{}
	for id, e := range snap.Entries {
		e.Meta.Revision = 0
		out[id] = e
	}
	return out
}

// change changes the plugin's state with Config.Change. It fails the test if the plugin keeps state and Change is
// missing.
func (k *kit) change(t *testing.T, s *plugin.Session) {
	t.Helper()
	if k.Change != nil {
		k.Change(s)
	} else if len(capture(t, s).Entries) > 0 {
		t.Fatal("the plugin keeps state: Config.Change must change it")
	}
}

// roundTrip checks that a change shows in the state and in the fingerprint, and that another session can restore it. A
// plugin that changes state without increasing its revision fails here: lashd would not store such a change.
func (k *kit) roundTrip(t *testing.T) {
	s := k.open(t)
	blank := capture(t, s)
	k.change(t, s)
	changed := capture(t, s)
	different := !cmp.Equal(state(blank), state(changed))
	if different != (k.Change != nil) || different && changed.Fingerprint == blank.Fingerprint {
		t.Errorf("from %+v to %+v: a change must show in the state and in the revision", blank, changed)
	}
	if diff := cmp.Diff(state(changed), restore(t, k.open(t), changed)); diff != "" {
		t.Errorf("the restored state differs: %s", diff)
	}
}

// idempotent checks that restoring twice has the same result as restoring once, also for an empty snapshot.
func (k *kit) idempotent(t *testing.T) {
	s, blank := k.open(t), state(capture(t, k.open(t)))
	k.change(t, s)
	changed := capture(t, s)
	for range 2 {
		if diff := cmp.Diff(state(changed), restore(t, s, changed)); diff != "" {
			t.Errorf("the restored state differs: %s", diff)
		}
	}
	for range 2 {
		if diff := cmp.Diff(blank, restore(t, s, plugin.Snapshot{})); diff != "" {
			t.Errorf("restoring an empty snapshot must give the state of a new session: %s", diff)
		}
	}
}
