package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync"

	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
)

// Config is what a Part needs.
type Config struct {
	ID       string                 // of the plugin
	Root     string                 // its directory, which does not change any more
	Data     string                 // where it may keep files
	Environ  []string               // the whole environment of lashd
	Nonce    string                 // begins the mark of its processes, for proc.Sweep
	Tools    []manifest.Tool        // those that have a command are made; the others are somebody else's
	Hooks    []manifest.CommandHook // likewise all of these
	Confine  *child.Confinement     // what its programs are held to; nil: to nothing
	Approval child.Approval         // nil: nobody has to approve its programs
	Output   *child.Log             // what hooks say, and how each run of one ended
	Log      *slog.Logger
}

// Part is what commands contribute to a plugin.
type Part struct {
	config     Config
	tools      []*commandTool
	hooks      []*hook
	diagnostic *regexp.Regexp // what interpreters say of hooks
	reading    chan struct{}  // held while a long output is in memory to become an artifact

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // runs of commands
}

// errShutdown is why a command does not run any more.
var errShutdown = errors.New("the plugin is shut down")

// New makes a Part. It starts nothing.
func New(c Config) (*Part, error) {
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

// hideSecrets keeps what the commands are given out of the log.
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

// Spec is what commands contribute to a session.
func (p *Part) Spec(c plugin.BuildContext) (plugin.Spec, error) {
	return func(r *plugin.Registrar) error {
		if len(p.tools) > 0 {
			r.Tools().Add(&tools{part: p, cwd: c.Cwd})
		}
		if len(p.hooks) > 0 {
			(&session{part: p, build: c}).register(r)
		}
		return nil
	}, nil
}

// begin tells that a command is to run; end tells that it has ended.
func (p *Part) begin() (end func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errShutdown
	}
	p.running.Add(1)
	return p.running.Done, nil
}

// prepare makes a command one that is started for a session: with its environment, its mark, what it is held to, and the program
// that was approved, which is let go of with release once the command runs.
func (p *Part) prepare(ctx context.Context, c *proc.Command, cwd string, pass []string, set map[string]string) (release func(), err error) {
	if c.Confine, err = p.config.Confine.In(cwd); err != nil {
		return nil, err
	}
	temp := p.config.Confine.Temp()
	if temp != "" {
		if err := os.MkdirAll(temp, 0o700); err != nil {
			return nil, err
		}
	}
	c.Nonce = p.config.Nonce + "/plugin/" + p.config.ID
	c.Env = child.Environment{Daemon: p.config.Environ, Pass: pass, Set: set, Root: p.config.Root, Data: p.config.Data, Temp: temp}.List()
	return p.config.Approval.Ask(ctx, p.config.ID, c)
}

// Shutdown waits until no command runs; none begins any more. Commands end with their calls: it is for those whose end nobody
// has waited for.
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

// tools are the commands as tools of a session.
type tools struct {
	part *Part
	cwd  string
}

// Tools implements tool.Provider.
func (t *tools) Tools() []tool.Tool {
	list := make([]tool.Tool, len(t.part.tools))
	for i, c := range t.part.tools {
		list[i] = c.tool
	}
	return list
}

// Execute implements tool.Provider.
func (t *tools) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	for _, c := range t.part.tools {
		if c.tool.Manifest.Name == call.Name {
			return tool.Result{Output: t.part.execute(ctx, c, t.cwd, call)}, nil
		}
	}
	return tool.Result{}, fmt.Errorf("plugin %s: no tool %q", t.part.config.ID, call.Name)
}
