//go:build unix

package plugins_test

import (
	"encoding/json"
	"slices"
	"testing"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// slots are hooks whose answers say little by themselves: what the plugin of testdata makes of what it is asked.
func slots(t *testing.T, f plugin.Factory) {
	h, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{f})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Open(t.Context(), standard.ID, nil, plugin.BuildContext{SessionID: "ses_1", Cwd: t.TempDir(), StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	leftOut := func(want ...string) {
		t.Helper()
		all := []protocol.ToolManifest{{Name: "hidden"}, {Name: "shown"}, {Name: "spare"}}
		got, err := s.Contribute(t.Context(), plugin.CatalogContext{SessionID: "ses_1", Manifests: all})
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("it leaves out %q, %v, want %q", got, err, want)
		}
	}
	leftOut("hidden")
	to := plugin.Target{Explicit: new(protocol.SessionID("ses_1"))}
	if _, err := s.Command(t.Context(), "notes.add", &plugin.OperationCall{Args: json.RawMessage(`{"a":"b"}`)}, to); err != nil {
		t.Fatal(err)
	}
	leftOut("hidden", "spare") // once there are notes
	if text, err := s.Prose(t.Context(), "a<code>b"); err != nil || text != "ab" {
		t.Errorf("it makes %q of prose, %v", text, err)
	}
}

func TestSlots(t *testing.T) {
	t.Run("issue/4-2 catalog and prose, compiled in", func(t *testing.T) { slots(t, compiled{}) })
	each(t, "issue/4-2 catalog and prose", func(t *testing.T, c process.Config) {
		slots(t, begin(t, c))
	})
}
