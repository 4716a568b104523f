// Package promptcontext is the plugin that tells the model where it works: what a project has written down for agents, and
// facts of the environment. It reads a few small files and runs nothing; what it reads is shown as text of the workspace.
package promptcontext

import (
	"context"
	"errors"
	"sync"
	"time"

	"lashd/engine/plugin"
	"lashd/internal/deadline"
	"lashd/rpc/protocol"
)

// Factory builds the prompt context of sessions. The zero value is ready; it must live as long as the process, since it
// keeps what must not be closed.
type Factory struct{ kept shelf }

// ID implements plugin.Factory.
func (*Factory) ID() string { return "promptcontext" }

// Build implements plugin.Factory.
func (f *Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	return &instance{looker: &looker{cwd: ctx.Cwd, state: ctx.StateDir, files: reader{state: ctx.StateDir, kept: &f.kept}}}, nil
}

// instance is the plugin of one session.
type instance struct {
	mu     sync.Mutex
	looker *looker
	turn   protocol.TurnID // that told was made for; empty: none
	told   []plugin.Prompt
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	r.Prompt().Hook(i.prompts)
	return nil
}

// prompts looks at the files once a turn: what a turn is told does not change while it runs.
func (i *instance) prompts(ctx context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.turn != "" && i.turn == pc.TurnID {
		return i.told, nil
	}
	told, err := deadline.Do(ctx, patience, errHangs, i.looker.look)
	if err != nil {
		i.looker = i.looker.anew() // the other one may still be at it
		told = i.looker.blind(err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	i.turn, i.told = pc.TurnID, told
	return i.told, nil
}

// patience is how long a turn waits for the files: a file system that hangs holds it no longer.
const patience = 30 * time.Second

var errHangs = errors.New("those of the workspace could not be read within " + patience.String())

// looker looks at the files. It is used by one goroutine.
type looker struct {
	cwd   string
	state string
	files reader
	here  location // of cwd
	own   location // of state
}

// anew is one that knows nothing yet.
func (l *looker) anew() *looker {
	return &looker{cwd: l.cwd, state: l.state, files: reader{state: l.state, kept: l.files.kept}}
}

// blind is what can be told without the files.
func (l *looker) blind(why error) []plugin.Prompt {
	text := l.environment(project{}) + "\n- Files: " + why.Error()
	return []plugin.Prompt{{Slot: plugin.SlotEnvironment, Title: "Environment", Content: text}}
}

func (l *looker) look(context.Context) ([]plugin.Prompt, error) {
	at := climb(l.here.of(l.cwd), l.own.of(l.state))
	return []plugin.Prompt{
		{Slot: plugin.SlotEnvironment, Title: "Environment", Content: l.environment(at)},
		{Slot: plugin.SlotProjectInstructions, Title: "Project instructions", Content: l.instructions(at)},
	}, nil
}
