package main

import (
	"encoding/json"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/plugin/plugintest"
)

func TestProtocolContract(t *testing.T) { plugintest.Run(t, trail{}, plugintest.Config{}) }

func TestContract(t *testing.T) {
	plugintest.Run(t, tour{}, plugintest.Config{Change: func(s *plugin.Session) {
		call := &plugin.OperationCall{Args: json.RawMessage(`{"text":"x"}`)}
		if _, err := s.Command(t.Context(), "tour.note", call, plugin.Target{Current: true}); err != nil {
			t.Error(err)
		}
	}, Build: plugin.BuildContext{SessionID: "ses_1", Cwd: t.TempDir(), StateDir: t.TempDir()}})
}
