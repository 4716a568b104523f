package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/engine/sandbox"
	"lashd/engine/tool"
	"lashd/internal/pathresolve"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// Config configures the commands of one plugin. The loader fills it in for each loaded version of
// the plugin.
type Config struct {
	ID       string                 // of the plugin
	Root     string                 // the plugin's directory, which no longer changes
	Data     string                 // directory for the plugin's own files
	Project  string                 // the workspace that has the plugin; empty: that of the session
	Environ  []string               // lashd's environment
	Nonce    string                 // prefix of the mark of its processes, for proc.Sweep
	Tools    []manifest.Tool        // all tools; those without a command are ignored
	Hooks    []manifest.CommandHook // command hooks, in order
	Confine  *child.Confinement     // limits and sandbox; nil: none
	Approval child.Approval         // nil: the plugin needs no approval
	Output   *child.Log             // the plugin's log: stderr of hooks, and the result of each run
	Log      *slog.Logger
}

// Part implements the tools and hooks of one plugin that are commands. All sessions share it; each
// session has its own state for hooks. It starts no process by itself and keeps none between calls.
// The methods are safe for concurrent use.
type Part struct {
	config     Config
	tools      []*commandTool
	hooks      []*hook
	diagnostic *regexp.Regexp // matches messages of interpreters about hooks, which are no reason
	reading    chan struct{}  // holds one value while a long output is in memory to become an artifact

	mu      sync.Mutex
	closed  bool           // no more commands start
	running sync.WaitGroup // commands in progress
}

// errShutdown rejects commands after Shutdown.
var errShutdown = errors.New("the plugin is shut down")

// New checks the tools and hooks of a plugin, and removes old transcripts. It starts nothing.
func New(c Config) (*Part, error) {
	if c.Data != "" && len(c.Hooks) > 0 {
		_ = os.RemoveAll(filepath.Join(c.Data, transcripts)) // those that a crash left; a later write reports a directory that cannot be changed
	}
	p := &Part{config: c, diagnostic: newDiagnostic(c.Root), reading: make(chan struct{}, 1)}
	for _, t := range c.Tools {
		if len(t.Command) == 0 {
			continue
		}
		made, err := p.newTool(t)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: tool %s: %w", c.ID, t.Name, err)
		}
		p.tools = append(p.tools, made)
	}
	for _, h := range c.Hooks {
		made, err := p.newHook(h)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: %s:%d: %w", c.ID, h.File, h.Line, err)
		}
		p.hooks = append(p.hooks, made)
	}
	p.hideSecrets()
	return p, nil
}

// hideSecrets makes the plugin's log replace the secrets that commands get.
func (p *Part) hideSecrets() {
	var all []child.Secret
	for _, t := range p.config.Tools {
		all = append(all, child.Environment{Daemon: p.config.Environ, Pass: t.PassEnv, Set: t.Env}.Secrets()...)
		all = append(all, child.SecretsInArgs(t.Command)...)
	}
	for _, h := range p.hooks {
		all = append(all, child.Environment{Daemon: p.config.Environ, Pass: h.PassEnv}.Secrets()...)
		all = append(all, child.SecretsInArgs(h.argv)...)
	}
	if len(all) > 0 {
		p.config.Output.Hide(all...)
	}
}

// Spec returns what the plugin's commands add to a session.
func (p *Part) Spec(c plugin.BuildContext) (plugin.Spec, error) {
	return func(r *plugin.Registrar) error {
		if len(p.tools) > 0 {
			r.Tools().Add(&tools{part: p, place: place{c.Cwd, c.Sandbox}})
		}
		if len(p.hooks) > 0 {
			(&session{part: p, build: c, transcript: newTranscript(p.config.Data, c.SessionID)}).register(r)
		}
		return nil
	}, nil
}

// begin registers a command that is about to run. The caller calls end when it has ended, which
// Shutdown waits for. After Shutdown, begin fails.
func (p *Part) begin() (end func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errShutdown
	}
	p.running.Add(1)
	return p.running.Done, nil
}

// place is where the commands of a session run.
type place struct {
	cwd     string               // the workspace
	sandbox protocol.SandboxMode // of the session's own commands, or of a call if that is narrower
}

// in returns the place of a call that runs in a mode.
func (p place) in(mode protocol.SandboxMode) place {
	return place{p.cwd, authority.Narrowest(p.sandbox, mode)}
}

// prepare completes a command for a session: directory, environment, mark, limits and sandbox. It creates the
// temporary directory of a sandboxed command. For a plugin that needs approval, it checks that the
// program is the approved one. The caller calls release after the start, and reports the Changes of box after the end.
func (p *Part) prepare(ctx context.Context, c *proc.Command, at place, pass []string, set map[string]string) (box *sandbox.Box, release func(), err error) {
	if c.Dir != "" && c.Dir != p.config.Root {
		if c.OpenDir, c.Dir, err = pathresolve.OpenDir(c.Dir, "."); err != nil {
			return nil, nil, err
		}
		defer func() { release, err = afterStart(c.OpenDir, release, err) }()
	}
	if box, err = p.config.Confine.For(at.sandbox).In(at.cwd); err != nil {
		return nil, nil, err
	}
	c.Confine = box.Confinement
	temp := p.config.Confine.Temp()
	if temp != "" {
		if err := os.MkdirAll(temp, 0o700); err != nil {
			return nil, nil, err
		}
	}
	c.Nonce = p.config.Nonce + "/plugin/" + p.config.ID
	c.Env = child.Environment{Daemon: p.config.Environ, Pass: pass, Set: set, Root: p.config.Root, Data: p.config.Data, Temp: temp}.List()
	release, err = p.config.Approval.Ask(ctx, p.config.ID, c)
	return box, release, err
}

// afterStart adds the closing of a command's directory to its release. If the command cannot start, it closes the directory now.
func afterStart(dir *os.File, release func(), err error) (func(), error) {
	if err != nil {
		dir.Close()
		return nil, err
	}
	return func() {
		release()
		dir.Close()
	}, nil
}

// Shutdown prevents further commands and waits for those in progress. They end with their calls;
// Shutdown covers those whose callers no longer wait. The error means that ctx ended first.
func (p *Part) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("plugin %s: commands still run: %w", p.config.ID, context.Cause(ctx))
	}
}

// tools offers the commands as tools of one session.
type tools struct {
	part *Part
	place
}

// Tools implements tool.Provider.
func (t *tools) Tools() []tool.Tool {
	list := make([]tool.Tool, len(t.part.tools))
	for i, c := range t.part.tools {
		list[i] = c.tool
	}
	return list
}

// Execute implements tool.Provider. A failing command is a failed output, not an error.
func (t *tools) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	for _, c := range t.part.tools {
		if c.tool.Manifest.Name == call.Name {
			return tool.Result{Output: t.part.execute(ctx, c, t.in(call.Sandbox), call)}, nil
		}
	}
	return tool.Result{}, fmt.Errorf("plugin %s: no tool %q", t.part.config.ID, call.Name)
}
