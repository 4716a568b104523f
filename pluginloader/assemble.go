package pluginloader

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/command"
	"lashd/pluginloader/content"
	"lashd/pluginloader/declared"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// part is something that a plugin contributes besides its process: commands, MCP servers, texts,
// monitors. Spec is called for each session.
type part interface {
	Spec(plugin.BuildContext) (plugin.Spec, error)
}

// said is the part of a manifest that needs no program: prompt texts and tool switches.
type said struct{ *manifest.Plugin }

// Spec implements part.
func (s said) Spec(plugin.BuildContext) (plugin.Spec, error) {
	return declared.Spec(s.Prompt, s.ToolSwitches), nil
}

// watching is the monitors of a manifest. root is the directory of the plugin's copy, which their
// commands get as PLUGIN_ROOT.
type watching struct {
	monitors []manifest.Monitor
	root     string
}

// Spec implements part.
func (w watching) Spec(plugin.BuildContext) (plugin.Spec, error) {
	return declared.Monitors(w.monitors, w.root), nil
}

// assembly builds a unit from a copy. Its methods add one part each, and finish creates the
// factory. It lives on while the unit runs, because the factory calls spec for every session.
type assembly struct {
	*unit
	loader    *Loader
	data      string // directory for the plugin's own files
	workspace string // the plugin's workspace; empty: a plugin of the user
	parts     []part
}

// assemble builds a unit from a copy. It starts nothing. known holds the tool lists of MCP servers
// from an earlier run with the same contents, so those servers need not start. The caller owns the
// unit and, after an error, still owns the copy.
func (l *Loader) assemble(c content.Copy, e *entry, known map[string]mcp.List) (*unit, error) {
	u := &unit{dir: e.dir, copy: c, manifest: c.Plugin, output: e.log, own: e.set.scope == protocol.ScopeUser, users: 1}
	a := &assembly{unit: u, loader: l, data: l.dataOf(e.set, e.place(), c.Plugin.Name), workspace: e.set.cwd}
	if err := os.MkdirAll(a.data, 0o700); err != nil {
		return nil, err
	}
	if err := errors.Join(a.addServers(known), a.addCommands()); err != nil {
		l.let(u)
		return nil, err
	}
	if len(u.manifest.Prompt) > 0 || u.manifest.ToolSwitches != nil {
		a.parts = append(a.parts, said{u.manifest})
	}
	if m := u.manifest.Monitors; len(m) > 0 {
		a.parts = append(a.parts, watching{m, a.copy.Root})
	}
	if err := a.finish(); err != nil {
		l.let(u)
		return nil, err
	}
	return u, nil
}

// addServers adds the MCP servers. Equal servers of several plugins share a connection in the
// loader's pool.
func (a *assembly) addServers(known map[string]mcp.List) (err error) {
	if len(a.manifest.MCPServers) == 0 {
		return nil
	}
	a.servers, err = a.loader.servers.Part(mcp.Config{
		Plugin: a.name(), Root: a.copy.Root, Data: a.data, Digest: string(a.copy.Digest), Servers: a.manifest.MCPServers, Known: known,
		Confine: a.confinement(), Approval: a.approval(), Output: a.output, Workspace: a.workspace != "", Dir: a.serverDir(),
		Changed: func(ctx context.Context) { a.loader.config.ToolsChanged(ctx, a.name(), "") },
		Health:  a.report(),
	})
	if err == nil {
		a.parts, a.ends = append(a.parts, a.servers), append(a.ends, a.servers)
	}
	return err
}

// serverDir returns the directory in which servers of a workspace's .mcp.json run: the workspace; empty: another plugin has them.
func (a *assembly) serverDir() string {
	if a.manifest.Layout {
		return a.workspace
	}
	return ""
}

// addCommands adds the tools and hooks that are commands. A plugin without any gets an empty part.
func (a *assembly) addCommands() error {
	c, err := command.New(command.Config{
		ID: a.name(), Root: a.copy.Root, Data: a.data, Project: a.workspace, Environ: a.loader.config.Environ, Nonce: a.loader.config.Nonce,
		Tools: a.manifest.Tools, Hooks: a.manifest.CommandHooks, Confine: a.confinement(), Approval: a.approval(), Output: a.output,
		Log: a.loader.config.Log,
	})
	if err == nil {
		a.parts, a.ends = append(a.parts, c), append(a.ends, c)
	}
	return err
}

// finish creates the plugin's factory: that of the process, which also registers the other parts,
// or one for the other parts alone.
func (a *assembly) finish() (err error) {
	if a.manifest.Process == nil {
		held := a.confinement()
		a.factory = built{plugin.Builder(a.name(), a.spec), held != nil && held.Sandbox != nil, a.outside}
		return nil
	}
	config, err := a.processConfig()
	if err != nil {
		return err
	}
	if a.process, err = process.New(config); err != nil {
		return err
	}
	a.factory, a.ends = a.process, append(a.ends, a.process)
	return nil
}

// built is the factory of a plugin without a process.
type built struct {
	plugin.Factory
	sandboxed bool
	outside   func(protocol.SandboxMode) []plugin.Program
}

// Outside implements plugin.Outsider.
func (b built) Outside(mode protocol.SandboxMode) []plugin.Program { return b.outside(mode) }

// Sandboxed implements plugin.Loaded.
func (b built) Sandboxed() bool { return b.sandboxed }

// spec returns what all parts together register in a session. It rejects options that do not fit
// the plugin's schema.
func (a *assembly) spec(ctx plugin.BuildContext) (plugin.Spec, error) {
	if err := checkOptions(a.manifest, ctx.Options); err != nil {
		return nil, err
	}
	var specs []plugin.Spec
	for _, p := range a.parts {
		s, err := p.Spec(ctx)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	return func(r *plugin.Registrar) error {
		for _, s := range specs {
			if err := s(r); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// processConfig returns the configuration of the plugin's process: what the manifest says, and what
// only the daemon knows, such as its environment, the user's options and the sandbox.
func (a *assembly) processConfig() (process.Config, error) {
	l := a.loader
	if err := checkOptions(a.manifest, l.config.Options[a.name()]); err != nil {
		return process.Config{}, fmt.Errorf("in lashd's configuration: %w", err)
	}
	c := Process(a.manifest, a.copy.Root, a.data)
	c.Environ, c.Options, c.Nonce, c.Log, c.Output = l.config.Environ, l.config.Options[a.name()], l.config.Nonce, l.config.Log, a.output
	c.Also, c.Confine, c.Approval, c.Workspace = a.spec, a.confinement(), a.approval(), a.workspace
	c.ToolsChanged = func(ctx context.Context, id protocol.SessionID) { l.config.ToolsChanged(ctx, a.name(), id) }
	c.Quarantined, c.Outside = a.report(), a.outside
	return c, nil
}

// report returns a function that notifies clients about the plugin's health. Supervisors call it
// when a program fails too often or works again. It returns at once, because a supervisor that
// closes waits for it.
func (a *assembly) report() func() {
	l, u := a.loader, a.unit
	return func() {
		l.inBackground("report the health of a plugin", func() { l.post(func(context.Context) { l.notifyAbout(u) }, func() {}) })
	}
}

// Process returns the configuration of a plugin's process as far as the manifest determines it. The
// process runs in root and keeps its files in data. `lash plugin check` calls it too.
func Process(m *manifest.Plugin, root, data string) process.Config {
	put := func(text string) string {
		return manifest.Substitute(text, root, data, func(string) (string, bool) { return "", false })
	}
	p := m.Process
	c := process.Config{
		ID: m.Name, Version: m.Version, Dir: root, DataDir: data, Allow: p.PassEnv, Set: map[string]string{},
		Contributes: contributions(m), Eager: p.Startup == manifest.StartEager, Deadlines: deadlines(p.Deadlines),
	}
	for _, use := range m.Capabilities {
		c.Uses = append(c.Uses, process.Capability(use))
	}
	for _, arg := range p.Command {
		c.Argv = append(c.Argv, put(arg))
	}
	for name, value := range p.Env {
		c.Set[name] = put(value)
	}
	return c
}

// approval returns the check of programs for a plugin of a workspace; nil: the plugin is the
// user's.
//
// Before each start it compares the program, and all files that commands name, with what was
// approved. Programs inside the copy need no check, because the copy's digest covers them. Programs
// in the data directory were written by approved programs. For others, the check leaves the file
// open and runs that file, so that it cannot be exchanged in between.
func (a *assembly) approval() child.Approval {
	if a.workspace == "" {
		return nil
	}
	return func(ctx context.Context, c *proc.Command) (release func(), err error) {
		err = errors.Join(a.loader.programs.CheckFiles(ctx, a.copy.Beyond), a.loader.programs.CheckDirectory(ctx, a.copy.Beyond, a.workspace, c.Dir))
		if err != nil {
			return nil, err
		}
		if name := cmp.Or(c.Path, c.Argv[0]); inside(name, a.copy.Root) || inside(name, a.data) {
			return func() {}, nil
		}
		p, err := a.loader.programs.Open(ctx, a.copy.Beyond, c.Argv[0])
		if err != nil {
			return nil, err
		}
		c.Path, c.Program = p.Path, p.Runs
		return func() { p.Close() }, nil // closing a file that was only read cannot lose anything
	}
}

// inside reports whether a path is below dir.
func inside(path, dir string) bool {
	rest, is := strings.CutPrefix(filepath.Clean(path), dir+string(filepath.Separator))
	return is && rest != ""
}

// deadlines converts the timeouts of a manifest. CallMs applies to every kind of call that has no
// limit of its own. Zero values leave the defaults of package process.
func deadlines(d *manifest.Deadlines) process.Deadlines {
	if d == nil {
		return process.Deadlines{}
	}
	call := milliseconds(d.CallMs)
	return process.Deadlines{
		Start: milliseconds(d.StartMs), Stop: milliseconds(d.StopMs), State: call, Hook: call, Query: call, Command: call, Tool: call, Code: call,
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// executorOf converts the code executor of a manifest; nil: it has none.
func executorOf(x *manifest.CodeExecutor) *process.CodeExecutor {
	if x == nil {
		return nil
	}
	return &process.CodeExecutor{Replay: x.Replay}
}

// contributions returns what the manifest declares for the process. The process must confirm
// exactly this in its handshake.
func contributions(m *manifest.Plugin) process.Contributions {
	c := process.Contributions{
		Changing: m.MoreTools, Preparing: m.Prepares, Executor: executorOf(m.CodeExecutor), State: m.State, Tasks: m.Tasks,
	}
	for _, h := range m.Hooks {
		hook := process.Hook{
			Name: process.HookName(h.On), Timeout: milliseconds(h.TimeoutMs), OnError: process.OnError(h.OnError), Priority: h.Priority, Messages: h.Messages,
		}
		for _, e := range h.Events {
			hook.Events = append(hook.Events, plugin.LifecycleKind(e))
		}
		c.Hooks = append(c.Hooks, hook)
	}
	for _, t := range m.Tools {
		if len(t.Command) == 0 {
			c.Tools = append(c.Tools, toolOf(t))
		}
	}
	for _, o := range m.Operations {
		c.Operations = append(c.Operations, protocol.OperationInfo{
			Name: o.Name, Kind: protocol.OperationKind(o.Kind), Session: cmp.Or(protocol.SessionRule(o.Session), protocol.SessionRequired),
			Description: o.Description, Input: o.Input, Output: o.Output,
		})
	}
	for _, t := range m.Triggers {
		c.Triggers = append(c.Triggers, plugin.TriggerEvent{
			ResourceType: t.ResourceType, Alias: t.Alias, Event: t.Event, Description: t.Description, Payload: t.Payload,
		})
	}
	for _, e := range m.Extensions {
		c.Extensions = append(c.Extensions, plugin.Extension{ID: e.ID, Payload: e.Payload})
	}
	if m.Input != nil {
		c.Input = &plugin.TurnInput{Schema: m.Input.Schema, Required: m.Input.Required}
	}
	return c
}

// toolOf converts a tool that the process runs. Without a replay rule in the manifest, lashd never
// repeats a call.
func toolOf(t manifest.Tool) tool.Tool {
	return tool.Tool{
		Manifest: protocol.ToolManifest{Name: t.Name, Description: t.Description, Kind: cmp.Or(protocol.ToolKind(t.Kind), protocol.ToolKindOther), Input: t.Input},
		Contract: protocol.ToolContract{
			Output: t.Output, Replay: cmp.Or(protocol.Replay(t.Replay), protocol.ReplayNever), Serial: t.Serial, TimeoutMs: t.TimeoutMs,
		},
	}
}

// dataOf returns the directory for a plugin's own files. Plugins of different workspaces with the
// same name have different directories.
func (l *Loader) dataOf(s *set, dir, name string) string {
	if s.scope == protocol.ScopeUser {
		return filepath.Join(l.config.Home, "plugins", "data", name)
	}
	return filepath.Join(l.config.Home, "plugins", "data", fmt.Sprintf("%s@%.16s", name, protocol.DigestOf([]byte(dir))))
}

// errNoOptions rejects options of a plugin that declares none.
var errNoOptions = errors.New("the plugin has no options; its manifest has no \"config\"")

// checkOptions returns an error for options that do not fit the plugin's schema. No options always
// fit. A mistake in options should fail early and not change what the plugin does.
func checkOptions(m *manifest.Plugin, options json.RawMessage) error {
	switch {
	case len(options) == 0:
		return nil
	case len(m.Config) == 0:
		return errNoOptions
	}
	if err := tool.Fits(m.Config, options); err != nil {
		return fmt.Errorf("options: %w", err)
	}
	return nil
}
