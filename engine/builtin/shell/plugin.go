package shell

import "lashd/engine/plugin"

// Config is what a Factory needs.
type Config struct {
	Environ []string // of the daemon; commands get it without what looks secret
	Nonce   string   // begins the mark of the processes, for proc.Sweep
}

// Factory builds the shell tools of sessions.
type Factory struct {
	config  Config
	reading chan struct{} // held while a long output is in memory to become an artifact
}

// New makes a Factory.
func New(c Config) *Factory { return &Factory{config: c, reading: make(chan struct{}, 1)} }

// ID implements plugin.Factory.
func (*Factory) ID() string { return "shell" }

// Build implements plugin.Factory.
func (f *Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	return instance{&shell{cwd: ctx.Cwd, environ: f.config.Environ, nonce: f.config.Nonce, reading: f.reading}}, nil
}

type instance struct{ shell *shell }

// Register implements plugin.Plugin.
func (i instance) Register(r *plugin.Registrar) error {
	r.Tools().Add(i.shell)
	for n, text := range []string{commandGuidance, gitGuidance} {
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 100 + n, Tools: []string{"shell"}, Content: text})
	}
	r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 102, Tools: []string{"start_command"}, Content: backgroundGuidance})
	return nil
}

const commandGuidance = `# Running commands
- Each call starts afresh in the workspace: a cd, a variable or a background process does not outlive it. Use workdir
  rather than cd.
- Commands get no input. Give the flags that keep a program from asking or from opening a pager or an editor.
- A non-zero exit code is an answer, not an accident: read it together with the output.
- Prefer the file tools to cat, sed, find and grep where they do the same. Keep output short with the program's own
  options; what is too long is cut in the middle.
- Quote paths. Before a command that deletes or overwrites, make sure what it will hit.`

const backgroundGuidance = `# Commands in the background
- start_command is for what takes longer than you want to wait, or never ends: servers, watchers, long builds. Do not poll
  what you start: with wake you are woken when it ends.
- Say that a command is rerunnable only if it does no harm to run it again from the beginning: it is, when lashd is restarted.
- Stop what nobody needs any more.`

const gitGuidance = `# Git
- Commit, push, tag, or change branches only when asked to. Look at git status and git diff before a commit, and put only
  files that belong to the task in it.
- Do not throw away work that you did not make: no reset --hard, checkout or restore over changes, clean, stash drop or
  branch deletion, unless asked in so many words.
- Do not rewrite what was pushed, force a push, skip hooks, or change git's configuration, unless asked.
- Keep secrets and generated files out of commits. If a hook or merge fails, say so and mend the cause.`
