//go:build unix

package process_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/plugin/plugintest"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

func contract(t *testing.T, c process.Config) {
	f := begin(t, c)
	plugintest.Run(t, unstopped{f}, plugintest.Config{
		Build: plugin.BuildContext{SessionID: "ses_kit", Cwd: t.TempDir(), StateDir: t.TempDir()},
		Seams: patience,
		Change: func(s *plugin.Session) {
			_, err := s.Command(context.Background(), "notes.add", &plugin.OperationCall{Args: json.RawMessage(`{"a":"b"}`)}, plugin.Target{Explicit: new(protocol.SessionID("ses_kit"))})
			if err != nil {
				t.Error(err)
			}
		},
	})
}

// unstopped hides Shutdown: the kit calls it in the middle, and afterwards uses the factory for other sessions.
type unstopped struct{ f *process.Factory }

func (u unstopped) ID() string { return u.f.ID() }

func (u unstopped) Build(c plugin.BuildContext) (plugin.Plugin, error) { return u.f.Build(c) }

func TestContract(t *testing.T) {
	t.Run("issue/4-2 a process that offers one of everything keeps the contract", func(t *testing.T) {
		contract(t, config(t, "good", everything()))
	})
	t.Run("issue/4-2 a plugin in another language keeps the contract", func(t *testing.T) {
		python, err := exec.LookPath("python3")
		skip.Unless(t, "PYTHON", err == nil, "there is no python3")
		script, err := filepath.Abs("testdata/notes.py")
		if err != nil {
			t.Fatal(err)
		}
		c := config(t, "good", everything())
		c.Argv = []string{python, "-u", script}
		contract(t, c)
	})
}
