package plugin_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
)

// memory is a plugin that keeps a text and records restored state.
type memory struct {
	id, version string
	revision    uint64
	text        string
	bulk        []string
	restored    []string
	fail        error
	busy        bool // changes during a capture
}

func (m *memory) ID() string                                       { return m.id }
func (m *memory) Build(plugin.BuildContext) (plugin.Plugin, error) { return m, nil }
func (m *memory) Register(*plugin.Registrar) error                 { return nil }
func (m *memory) Version() string                                  { return m.version }
func (m *memory) Revision() uint64                                 { return m.revision }

func (m *memory) Snapshot(_ context.Context, w *plugin.ArtifactWriter) (json.RawMessage, error) {
	if m.busy {
		m.revision++
	}
	for _, b := range m.bulk {
		w.Write("bulk", []byte(b))
	}
	return json.Marshal(m.text)
}

func (m *memory) Restore(_ context.Context, meta plugin.Meta, r *plugin.ArtifactReader) error {
	bulk, _ := r.Read("bulk")
	m.restored = append(m.restored, meta.Version+" "+string(meta.State)+" "+string(bulk))
	m.text = ""
	if meta.State != nil {
		_ = json.Unmarshal(meta.State, &m.text)
	}
	return m.fail
}

func mem(id string) *memory { return &memory{id: id, version: "1"} }

func capture(t *testing.T, s *plugin.Session) plugin.Snapshot {
	t.Helper()
	snap, err := s.Capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func restore(t *testing.T, s *plugin.Session, snap plugin.Snapshot) []string {
	t.Helper()
	unknown, err := s.Restore(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	return unknown
}

func TestCapture(t *testing.T) {
	t.Run("plugin/SN-01 state and artifacts survive a round trip, and the first artifact with a name is read", func(t *testing.T) {
		m := &memory{id: "m", version: "2", revision: 7, text: "hello", bulk: []string{"one", "two"}}
		snap := capture(t, open(t, m, with("plain", func(*plugin.Registrar) {})))
		wire, err := json.Marshal(snap)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]plugin.Entry{"m": {Meta: plugin.Meta{PluginID: "m", Version: "2", Revision: 7, State: raw(`"hello"`)},
			Artifacts: []plugin.Artifact{{Name: "bulk", Data: []byte("one")}, {Name: "bulk", Data: []byte("two")}}}}
		if diff := cmp.Diff(want, snap.Entries); diff != "" {
			t.Error(diff)
		}
		var read plugin.Snapshot
		if err := json.Unmarshal(wire, &read); err != nil {
			t.Fatal(err)
		}
		fresh := mem("m")
		if unknown := restore(t, open(t, fresh), read); fresh.text != "hello" || len(unknown) != 0 || !slices.Equal(fresh.restored, []string{`2 "hello" one`}) {
			t.Errorf("%+v, unknown %q", fresh, unknown)
		}
	})
	t.Run("plugin/SN-03 the fingerprint has the specified value and is a string in JSON", func(t *testing.T) {
		// Computed independently of this code: SHA-256 of "d\0" "1\0" 0 as 8 bytes, 0xff, "mem\0" "2\0" 258 as 8 bytes, 0xff.
		const want, empty = 15341594470874513134, 3466638113189764765
		s := open(t, &memory{id: "mem", version: "2", revision: 258})
		if got := printOf(t, s); got != want || printOf(t, open(t)) != empty || capture(t, s).Fingerprint != want {
			t.Errorf("%d, want %d", got, uint64(want))
		}
		if wire, err := json.Marshal(capture(t, s)); err != nil || !strings.Contains(string(wire), `"fingerprint":"15341594470874513134"`) || !strings.Contains(string(wire), `"revision":"258"`) {
			t.Errorf("%s, %v", wire, err)
		}
	})
	t.Run("plugin/SN-02 plugin/SN-04 the fingerprint changes with plugins, versions and revisions, and only with them", func(t *testing.T) {
		m := mem("m")
		s := open(t, m)
		before := capture(t, s).Fingerprint
		m.text = "changed under its revision"
		if printOf(t, s) != before {
			t.Error("it changes with the state")
		}
		for name, other := range map[string][]plugin.Factory{
			"more": {mem("m"), mem("n")}, "none": nil, "version": {&memory{id: "m", version: "2"}},
			"revision": {&memory{id: "m", version: "1", revision: 1}}, "order": {with("x", func(*plugin.Registrar) {}), mem("m")},
		} {
			if printOf(t, open(t, other...)) == before {
				t.Errorf("%s: it is the same", name)
			}
		}
	})
	t.Run("plugin/S-12 a change during a capture makes the fingerprint outdated", func(t *testing.T) {
		m := &memory{id: "m", version: "1", busy: true}
		s := open(t, m)
		if snap := capture(t, s); snap.Fingerprint == printOf(t, s) || snap.Entries["m"].Meta.Revision != 0 {
			t.Errorf("captured as revision %d, and is %d", snap.Entries["m"].Meta.Revision, m.revision)
		}
		m.busy = false
		if snap := capture(t, s); snap.Fingerprint != printOf(t, s) {
			t.Error("a second capture is not current")
		}
	})
	t.Run("plugin/SN-04 plugin/S-12 a failed capture returns nothing, and a later capture works", func(t *testing.T) {
		m := mem("m")
		bad := &clumsyState{memory: mem("bad")}
		s := open(t, m, bad)
		for _, want := range []string{"plugin bad: snapshot: boom", "plugin bad: snapshot: panicked: clumsy"} {
			snap, err := s.Capture(t.Context())
			if err == nil || err.Error() != want || snap.Entries != nil || snap.Fingerprint != 0 {
				t.Errorf("%+v, %v", snap, err)
			}
		}
		if snap := capture(t, s); len(snap.Entries) != 2 {
			t.Errorf("%+v", snap)
		}
	})
}

// clumsyState fails to be captured, then panics, then works.
type clumsyState struct {
	*memory
	times int
}

func (c *clumsyState) Build(plugin.BuildContext) (plugin.Plugin, error) { return c, nil }

func (c *clumsyState) Snapshot(ctx context.Context, w *plugin.ArtifactWriter) (json.RawMessage, error) {
	c.times++
	switch c.times {
	case 1:
		return nil, errBoom
	case 2:
		panic("clumsy")
	}
	return c.memory.Snapshot(ctx, w)
}
