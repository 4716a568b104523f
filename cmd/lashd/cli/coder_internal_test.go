package cli

import (
	"testing"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/daemon"
	"lashd/engine/driver/rlm"
	"lashd/pluginloader"
	"lashd/pluginloader/process"
)

func TestSandboxOfCells(t *testing.T) {
	for mode, required := range map[pluginloader.SandboxMode]bool{"": false, pluginloader.SandboxOn: false, pluginloader.SandboxOff: false, pluginloader.SandboxRequired: true} {
		t.Run("issue/19 the worker of code cells has a sandbox, and needs one only with plugin_sandbox = required; here it is "+string(mode), func(t *testing.T) {
			f, err := (&server{Environment: &daemon.Environment{Home: t.TempDir()}}).coder(config.Config{PluginBoxes: mode}, "n")
			if err != nil {
				t.Fatal(err)
			}
			held := f.(rlm.Factory).Executor.(process.Private).Config.Confine
			if held.Sandbox == nil || held.Sandbox.OpenNetwork || held.Required != required {
				t.Errorf("%+v, want a sandbox without network, required %t", held, required)
			}
		})
	}
}
