package shell

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/sandbox"
)

// Config configures a Factory.
type Config struct {
	// Environ is the daemon's environment. Commands get it without variables that look like
	// secrets.
	Environ []string
	// Nonce starts the mark of each process, by which proc.Sweep finds it.
	Nonce string
	// Sandbox has the places for sandboxes of commands.
	Sandbox sandbox.Places
}

// ReadableID is the extension that lists copies of plugins that commands in a sandbox may read, because they have skills with scripts.
const ReadableID = "lashd.readablePlugins"

// Factory builds the shell tools of sessions.
type Factory struct {
	config Config
	// reading is a semaphore: one long output at a time is in memory on its way to an
	// artifact.
	reading chan struct{}
}

// New returns a Factory.
func New(c Config) *Factory { return &Factory{config: c, reading: make(chan struct{}, 1)} }

// ID implements plugin.Factory.
func (*Factory) ID() string { return "shell" }

// Build implements plugin.Factory.
func (f *Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	var readable []string
	for _, payload := range ctx.Extensions[ReadableID] {
		var roots []string
		if err := json.Unmarshal(payload, &roots); err != nil {
			return nil, fmt.Errorf("extension %s: %w", ReadableID, err)
		}
		readable = append(readable, roots...)
	}
	return instance{&shell{readable: readable, cwd: ctx.Cwd, sandboxes: f.config.Sandbox, environ: f.config.Environ, nonce: f.config.Nonce, reading: f.reading}}, nil
}

// instance is the plugin of one session. It keeps no state besides the settings of its
// shell.
type instance struct{ shell *shell }

// Register implements plugin.Plugin.
func (i instance) Register(r *plugin.Registrar) error {
	r.Tools().Add(i.shell)
	for n, text := range []string{commandGuidance, gitGuidance} {
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 100 + n, Tools: []string{"shell"}, Content: text})
	}
	r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 102, Tools: []string{"start_command"}, Content: backgroundGuidance})
	r.Prompt().Hook(i.sandboxGuidance)
	return nil
}

// sandboxGuidance tells the model about the sandbox of the session's commands, if it has one.
func (i instance) sandboxGuidance(_ context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
	if pc.View == nil {
		return nil, nil
	}
	s := pc.View.Session
	mode, narrowed := i.shell.sandboxes.Mode(authority.SandboxOf(s.Config.Approval, s.Authority.Ceiling), i.shell.cwd)
	text := sandbox.Guide(mode)
	if text == "" || sandbox.Available() != nil {
		return nil, nil
	}
	if narrowed != "" {
		text += "\n- They cannot write to the workspace, because " + narrowed + "."
	}
	return []plugin.Prompt{{Slot: plugin.SlotGuidance, Priority: 103, Tools: []string{"shell"}, Content: text}}, nil
}

// commandGuidance is the part of the prompt about the shell tool, present while the session
// has that tool.
const commandGuidance = `# Running commands
- Each call starts in the workspace with a fresh shell: directory changes, variables and background processes are lost
  when it ends. Use workdir instead of cd.
- Commands get no input. Use flags that keep programs from asking questions or opening a pager or editor.
- A non-zero exit code is a result, not an error of the tool: read it together with the output.
- Prefer the file tools to cat, sed, find and grep where they do the same. Keep output short with the options of the
  program; long output is cut in the middle.
- Quote paths. Before you delete or overwrite files, check which files the command will affect.`

// backgroundGuidance is the part of the prompt about background commands.
const backgroundGuidance = `# Commands in the background
- Use start_command for commands that run long or never end: servers, watchers, long builds. Do not poll: with wake set,
  you are woken when the command ends.
- Set rerunnable only if it is safe to run the command again from the beginning. lashd does so after a restart.
- Stop commands that are no longer needed.`

// gitGuidance is the part of the prompt about git.
const gitGuidance = `# Git
- Commit, push, tag, or change branches only when asked to. Check git status and git diff before a commit, and commit only
  files that belong to the task.
- Do not discard work that is not yours: no reset --hard, checkout or restore over changes, clean, stash drop or
  branch deletion, unless explicitly asked.
- Do not rewrite pushed commits, force-push, skip hooks, or change git's configuration, unless asked.
- Keep secrets and generated files out of commits. If a hook or merge fails, say so and fix the cause.`
