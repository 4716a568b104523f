package cli

import (
	"os"
	"time"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/daemon"
	"lashd/engine/driver/rlm"
	"lashd/engine/plugin"
	"lashd/internal/pathresolve"
	"lashd/pluginloader"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
)

// coder returns the driver whose model writes code. The code of each session runs in a process of this program, in a
// sandbox without network and without files but the program itself. A system without sandboxes runs it without one, unless
// plugin_sandbox is required. The setting off does not apply: the code of a model never needs more.
func (e *server) coder(cfg config.Config, nonce string) (plugin.Factory, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = pathresolve.Existing(self)
	}
	if err != nil {
		return nil, err
	}
	options, err := cfg.Code.Options()
	if err != nil {
		return nil, err
	}
	return rlm.Factory{Executor: process.Private{Config: process.Config{
		ID: "starlark", Version: daemon.Version, Argv: []string{self, "worker"}, Dir: "/", Options: options, Nonce: nonce, Log: e.Log, Tireless: true,
		Contributes: process.Contributions{Executor: &process.CodeExecutor{Replay: true}},
		Uses:        []process.Capability{process.UsesTools},
		Deadlines:   process.Deadlines{Code: time.Hour},
		Confine:     &child.Confinement{Sandbox: &child.Sandbox{ReadPaths: []string{self}}, Hidden: []string{e.Home}, Required: cfg.PluginBoxes == pluginloader.SandboxRequired},
	}}}, nil
}
