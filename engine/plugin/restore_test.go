package plugin_test

import (
	"errors"
	"slices"
	"testing"

	"lashd/engine/plugin"
)

func TestRestore(t *testing.T) {
	entry := func(id, version, text string) plugin.Entry {
		return plugin.Entry{Meta: plugin.Meta{PluginID: id, Version: version, State: raw(`"` + text + `"`)}}
	}
	t.Run("plugin/SN-05 plugin/S-07 a plugin without an entry is reset, and restoring twice gives the same state", func(t *testing.T) {
		m, n := mem("m"), mem("n")
		m.text, n.text = "old", "old"
		s := open(t, m, n)
		snap := plugin.Snapshot{Entries: map[string]plugin.Entry{"n": entry("n", "1", "kept")}}
		for range 2 {
			restore(t, s, snap)
			if m.text != "" || n.text != "kept" {
				t.Errorf("%q, %q", m.text, n.text)
			}
		}
		if want := []string{"1  ", "1  "}; !slices.Equal(m.restored, want) {
			t.Errorf("%q, want %q", m.restored, want)
		}
	})
	t.Run("plugin/S-07 a session without a snapshot restores nothing", func(t *testing.T) {
		m := mem("m")
		open(t, m)
		if len(m.restored) != 0 {
			t.Errorf("%q", m.restored)
		}
	})
	t.Run("plugin/SN-06 plugin/S-07 entries of unknown plugins are reported, and the others are restored", func(t *testing.T) {
		m := mem("m")
		s := open(t, m)
		before := plugin.Snapshot{Entries: map[string]plugin.Entry{"m": entry("m", "1", "x"), "gone": entry("gone", "1", "theirs"), "also": entry("also", "1", "")}}
		if unknown := restore(t, s, before); !slices.Equal(unknown, []string{"also", "gone"}) {
			t.Errorf("unknown %q", unknown)
		}
		if m.text != "x" {
			t.Errorf("%q", m.text)
		}
	})
	t.Run("plugin/SN-07 a plugin receives state of another version", func(t *testing.T) {
		m := &memory{id: "m", version: "3"}
		restore(t, open(t, m), plugin.Snapshot{Entries: map[string]plugin.Entry{"m": entry("m", "2", "old")}})
		if !slices.Equal(m.restored, []string{`2 "old" `}) {
			t.Errorf("%q", m.restored)
		}
	})
	t.Run("plugin/SN-07 plugin/S-08 a failed restore opens no session and frees the id", func(t *testing.T) {
		m := mem("m")
		m.fail = errBoom
		h := newHost(t, m)
		again := func() error {
			_, _, err := h.OpenFrom(t.Context(), plugin.Stored{Plugins: &plugin.Snapshot{}}, "d", nil, plugin.BuildContext{SessionID: "s"})
			return err
		}
		if err := again(); !errors.Is(err, errBoom) || err.Error() != "plugin m: restore: boom" {
			t.Errorf("error %v", err)
		}
		m.fail = nil
		if err := again(); err != nil {
			t.Error(err)
		}
	})
	t.Run("plugin/SN-08 a fork starts with the state and is independent", func(t *testing.T) {
		h := newHost(t, forked{})
		parent, err := h.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "p"})
		if err != nil {
			t.Fatal(err)
		}
		restore(t, parent, plugin.Snapshot{Entries: map[string]plugin.Entry{"m": entry("m", "1", "shared")}})
		child, _, err := h.OpenFrom(t.Context(), plugin.Stored{Plugins: new(capture(t, parent))}, "d", nil, plugin.BuildContext{SessionID: "c", Parent: "p"})
		if err != nil {
			t.Fatal(err)
		}
		restore(t, child, plugin.Snapshot{Entries: map[string]plugin.Entry{"m": entry("m", "1", "its own")}})
		if p, c := capture(t, parent).Entries["m"], capture(t, child).Entries["m"]; string(p.Meta.State) != `"shared"` || string(c.Meta.State) != `"its own"` {
			t.Errorf("%s and %s", p.Meta.State, c.Meta.State)
		}
	})
}

// forked builds a separate memory for each session.
type forked struct{}

func (forked) ID() string                                       { return "m" }
func (forked) Build(plugin.BuildContext) (plugin.Plugin, error) { return mem("m"), nil }
