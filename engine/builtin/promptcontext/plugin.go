// Package promptcontext is the plugin that tells the model where it works: what a project has written down for agents, and
// facts of the environment. It reads a few small files and runs nothing; what it reads is shown as text of the workspace.
package promptcontext

import (
	"context"
	"sync"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// Factory builds the prompt context of sessions. The zero value is ready; it must live as long as the process, since it
// keeps what must not be closed.
type Factory struct{ kept shelf }

// ID implements plugin.Factory.
func (*Factory) ID() string { return "promptcontext" }

// Build implements plugin.Factory.
func (f *Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	return &instance{cwd: ctx.Cwd, state: ctx.StateDir, files: reader{state: ctx.StateDir, kept: &f.kept}}, nil
}

// instance is the plugin of one session.
type instance struct {
	cwd   string
	state string

	mu    sync.Mutex
	files reader
	here  location        // of cwd
	own   location        // of state
	turn  protocol.TurnID // that told was made for; empty: none
	told  []plugin.Prompt
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	r.Prompt().Hook(i.prompts)
	return nil
}

// prompts looks at the files once a turn: what a turn is told does not change while it runs.
func (i *instance) prompts(_ context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.turn == "" || i.turn != pc.TurnID {
		i.turn, i.told = pc.TurnID, i.look()
	}
	return i.told, nil
}

func (i *instance) look() []plugin.Prompt {
	at := climb(i.here.of(i.cwd), i.own.of(i.state))
	return []plugin.Prompt{
		{Slot: plugin.SlotEnvironment, Title: "Environment", Content: i.environment(at)},
		{Slot: plugin.SlotProjectInstructions, Title: "Project instructions", Content: i.instructions(at)},
	}
}
