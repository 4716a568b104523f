// Package promptcontext is the plugin that adds the environment and the project's
// instructions for agents to the prompt. It reads a few small files and runs no programs.
// The prompt marks their text as content of the workspace.
package promptcontext

import (
	"context"
	"errors"
	"sync"
	"time"

	"lashd/engine/plugin"
	"lashd/internal/deadline"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Factory builds the plugin of sessions. The zero value is ready to use. It must live as
// long as the process, because it holds files that must stay open.
type Factory struct{ kept shelf }

// ID implements plugin.Factory.
func (*Factory) ID() string { return "promptcontext" }

// Build implements plugin.Factory.
func (f *Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	return &instance{looker: &looker{cwd: ctx.Cwd, state: ctx.StateDir, files: reader{state: ctx.StateDir, kept: &f.kept}}}, nil
}

// instance is the plugin of one session. It caches the prompts of the current turn.
type instance struct {
	// mu serializes prompts and guards the other fields.
	mu     sync.Mutex
	looker *looker
	// turn is the turn for which prompts were made. Empty: none.
	turn   protocol.TurnID
	cached []plugin.Prompt
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	r.Prompt().Hook(i.prompts)
	return nil
}

// prompts reads the files once per turn, so that the prompt does not change during a turn.
func (i *instance) prompts(ctx context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.turn != "" && i.turn == pc.TurnID {
		return i.cached, nil
	}
	made, err := deadline.Do(ctx, readTimeout, errHangs, i.looker.look)
	if err != nil {
		i.looker = i.looker.renewed() // the abandoned call may still use the old one
		made = i.looker.withoutFiles(err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	i.turn, i.cached = pc.TurnID, made
	return i.cached, nil
}

// readTimeout is how long a turn waits for the files, in case the file system hangs.
const readTimeout = 30 * time.Second

// errHangs completes the line "Files: " in the prompt.
var errHangs = errors.New("the workspace could not be read within " + readTimeout.String())

// looker reads the files of a workspace. It belongs to one goroutine at a time.
type looker struct {
	cwd   string
	state string
	files reader
	own   location // caches the resolved path of state
}

// renewed returns a looker for the same workspace without cached state.
func (l *looker) renewed() *looker {
	return &looker{cwd: l.cwd, state: l.state, files: reader{state: l.state, kept: l.files.kept}}
}

// withoutFiles returns the prompts for a workspace that cannot be read.
func (l *looker) withoutFiles(why error) []plugin.Prompt {
	text := l.environment(project{}) + "\n- Files: " + why.Error()
	return []plugin.Prompt{{Slot: plugin.SlotEnvironment, Title: "Environment", Content: text}}
}

// look reads the files and returns the prompts. It runs with a deadline and may be
// abandoned.
func (l *looker) look(context.Context) ([]plugin.Prompt, error) {
	if err := pathresolve.Elsewhere(l.cwd); err != nil {
		return l.withoutFiles(err), nil
	}
	at := climb(l.cwd, l.own.of(l.state))
	return []plugin.Prompt{
		{Slot: plugin.SlotEnvironment, Title: "Environment", Content: l.environment(at)},
		{Slot: plugin.SlotProjectInstructions, Title: "Project instructions", Content: l.instructions(at)},
	}, nil
}
