//go:build unix

package plugins_test

import (
	"context"
	"encoding/json"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/plugin/plugintest"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// contract runs the kit on a plugin that takes notes.
func contract(t *testing.T, f plugin.Factory) {
	plugintest.Run(t, f, plugintest.Config{
		Build: plugin.BuildContext{SessionID: "ses_kit", Cwd: t.TempDir(), StateDir: t.TempDir()},
		Seams: patience,
		Change: func(s *plugin.Session) {
			to := plugin.Target{Explicit: new(protocol.SessionID("ses_kit"))}
			call := &plugin.OperationCall{Args: json.RawMessage(`{"a":"b"}`)}
			if _, err := s.Command(context.Background(), "notes.add", call, to); err != nil {
				t.Error(err)
			}
		},
	})
}

func TestContract(t *testing.T) {
	t.Run("issue/4-9 a plugin in Go that is compiled in keeps the contract", func(t *testing.T) {
		contract(t, compiled{})
	})
	each(t, "issue/4-9 the contract is kept by a process", func(t *testing.T, c process.Config) {
		contract(t, unstopped{begin(t, c)})
	})
}
