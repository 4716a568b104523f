package plugintest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
)

func capture(t *testing.T, s *plugin.Session) plugin.Snapshot {
	t.Helper()
	snap, err := s.Capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// restore restores, and gives the state that there is then: without revisions, which may grow.
func restore(t *testing.T, s *plugin.Session, snap plugin.Snapshot) map[string]plugin.Entry {
	t.Helper()
	if unknown, err := s.Restore(t.Context(), snap); err != nil || len(unknown) > 0 {
		t.Fatalf("restore: %v, unknown entries %q", err, unknown)
	}
	return state(capture(t, s))
}

func state(snap plugin.Snapshot) map[string]plugin.Entry {
	out := map[string]plugin.Entry{}
	for id, e := range snap.Entries {
		e.Meta.Revision = 0
		out[id] = e
	}
	return out
}

func (k *kit) change(t *testing.T, s *plugin.Session) {
	t.Helper()
	if k.Change != nil {
		k.Change(s)
	} else if len(capture(t, s).Entries) > 0 {
		t.Fatal("the plugin keeps state: Config.Change must change it")
	}
}

func (k *kit) roundTrip(t *testing.T) {
	s := k.open(t)
	blank := capture(t, s)
	k.change(t, s)
	changed := capture(t, s)
	different := !cmp.Equal(state(blank), state(changed))
	if different != (k.Change != nil) || different && changed.Fingerprint == blank.Fingerprint {
		t.Errorf("from %+v to %+v: a change must be seen in the state and in the revision", blank, changed)
	}
	if diff := cmp.Diff(state(changed), restore(t, k.open(t), changed)); diff != "" {
		t.Errorf("a session that restores the state has another one: %s", diff)
	}
}

func (k *kit) idempotent(t *testing.T) {
	s, blank := k.open(t), state(capture(t, k.open(t)))
	k.change(t, s)
	changed := capture(t, s)
	for range 2 {
		if diff := cmp.Diff(state(changed), restore(t, s, changed)); diff != "" {
			t.Errorf("restored: %s", diff)
		}
	}
	for range 2 {
		if diff := cmp.Diff(blank, restore(t, s, plugin.Snapshot{})); diff != "" {
			t.Errorf("restored as if new: %s", diff)
		}
	}
}
