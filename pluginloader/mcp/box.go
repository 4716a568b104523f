package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lashd/engine/authority"
	"lashd/engine/param"
	"lashd/engine/proc"
	"lashd/engine/sandbox"
	"lashd/engine/tool"
	"lashd/internal/pathresolve"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// box is the sandbox in which a server runs. It is a part of the endpoint, so a process never serves a session with another mode or
// another workspace than the ones it was started for.
type box struct {
	Mode      protocol.SandboxMode
	Workspace string // as stored, without links; empty: the server only lists its tools, and belongs to no workspace
	Network   bool
	Hosts     []string // that it reaches by a proxy
	Denied    []string // hosts that rules of the session deny
	Write     []string
	Read      []string // the program, and the plugin's directory if the server uses it
	Data      string   // the plugin's data directory, if the server uses it
}

// settings say in which sandbox a server runs.
type settings struct {
	manifest.ServerSandbox
	name      string // of the server
	workspace bool   // a plugin of a workspace has the server, so its settings are in a file of the plugin
	own       bool   // the plugin's manifest has a sandbox, which applies instead
}

// settingsOf returns the settings of a server. Those of the user's configuration replace those of a plugin of the user; a server of a
// workspace has only those that were shown when the plugin was trusted.
func (p *Pool) settingsOf(c *Config, name string, e *endpoint) settings {
	s := settings{ServerSandbox: c.Servers[name].ServerSandbox, name: name, workspace: c.Workspace, own: e.Held != nil && e.Held.Sandbox != nil}
	if set, ok := p.config.Settings[name]; ok && !c.Workspace {
		s.ServerSandbox = set
	}
	return s
}

// boxed reports whether the sandbox of a session's commands can apply to the server at all.
func (e *endpoint) boxed() bool {
	return e.URL == "" && !e.settings.own && e.settings.Sandbox != manifest.ServerFullAccess
}

// listing returns the sandbox in which a server runs before a session uses it; nil: none. A server that runs in its workspace gets the
// sandbox of a session that only reads there, and any other server one without a workspace.
func (p *Pool) listing(e *endpoint) *box {
	if !p.config.Default.Confines() {
		return nil
	}
	return e.boxOf(protocol.SandboxReadOnly, e.workspace)
}

// boxFor returns the sandbox for a call; nil: none. A host that a rule denies stays closed, whatever the settings say.
func (e *endpoint) boxFor(call *tool.Invocation) *box {
	b := e.boxOf(call.Sandbox, call.Cwd)
	if b != nil && len(b.Hosts) > 0 && call.Network != nil {
		b.Denied = call.Network.Denied
	}
	return b
}

// boxOf returns the sandbox for sessions with a mode in a workspace; nil: the server runs outside of one, because the mode or its
// settings say so, or because the system has no sandbox.
func (e *endpoint) boxOf(mode protocol.SandboxMode, workspace string) *box {
	if !mode.Confines() || !e.boxed() || sandbox.Available() != nil {
		return nil
	}
	if e.settings.Sandbox == manifest.ServerReadOnly {
		mode = authority.Narrowest(mode, protocol.SandboxReadOnly)
	}
	b := &box{Mode: mode, Workspace: workspace, Network: e.settings.Network, Hosts: e.settings.Hosts, Write: e.settings.Write}
	if e.root != "" {
		b.Read, b.Data = []string{e.root}, e.data
	}
	if program, err := pathresolve.Existing(e.Argv[0]); filepath.IsAbs(e.Argv[0]) && err == nil {
		b.Read = append(b.Read, program)
	}
	return b
}

// in returns the endpoint for sessions whose commands have a mode, with the sandbox of these commands, or the plugin's.
func (e *endpoint) in(mode protocol.SandboxMode, b *box) *endpoint {
	own := *e
	own.Box = b
	if e.settings.own && mode == protocol.SandboxReadOnly {
		own.Held = e.reading
	}
	own.seal(e.sealed)
	return &own
}

// confinement returns the limits and the sandbox of a process that is about to start, and its variables. The last result is nil without a
// sandbox of the session.
func (s *server) confinement() (*proc.Confinement, []string, *sandbox.Box, error) {
	e := s.end
	if e.Box == nil {
		return e.Held, e.Env, nil, nil
	}
	b := e.Box
	made, err := s.pool.config.Sandboxes.ForServer(sandbox.Server{
		ID: strings.Join([]string{e.label, e.Digest, e.Argv[0]}, "\n"), Mode: b.Mode, Workspace: b.Workspace, Read: b.Read, Data: b.Data, Write: b.Write, Network: b.Network,
		Hosts: b.Hosts, Denied: b.Denied,
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("prepare its sandbox: %w", err)
	}
	held := &proc.Confinement{Sandbox: made.Confinement.Sandbox}
	if e.Held != nil {
		held.Limits = e.Held.Limits
	}
	env := e.Env
	for _, v := range made.Env {
		if name, _, _ := strings.Cut(v, "="); !e.sets[name] { // its own variables stay
			env = append(env[:len(env):len(env)], v)
		}
	}
	return held, env, made, nil
}

// refusedSince returns what the sandbox of the running process refused since a time, and a text about it for the model; nil: nothing.
func (s *server) refusedSince(at time.Time) (*protocol.SandboxRefusal, string) {
	r := s.box.Load().RefusedSince(at.UnixMilli())
	if r == nil {
		return nil, ""
	}
	return r, fmt.Sprintf("\n[%s If the task needs that, a person can %s]\n", r.What, s.end.settings.advice("hosts = "+s.hosts(r.Hosts)))
}

// hosts returns the setting with the hosts that the server has and those that were refused to it, except those that rules deny.
func (s *server) hosts(refused []protocol.RefusedHost) string {
	all := slices.Clone(s.end.Box.Hosts)
	for _, r := range refused {
		all = append(all, r.Hosts...)
	}
	slices.Sort(all)
	encoded, err := json.Marshal(slices.Compact(all))
	if err != nil {
		panic("strings are always JSON: " + err.Error())
	}
	return string(encoded)
}

// watch returns a function that undoes and reports what a call changed in the workspace that could start programs later. It does the same
// as after a command.
func (s *server) watch() func() string {
	if s.end.Box == nil || s.end.Box.Workspace == "" {
		return func() string { return "" }
	}
	if running := s.box.Load(); running != nil {
		return running.Watch()
	}
	b, err := s.pool.config.Sandboxes.For(s.end.Box.Mode, s.end.Box.Workspace)
	if err != nil { // the server does not start, either
		return func() string { return "" }
	}
	return b.Changes
}

// hint returns a sentence for people about a server that failed to start in a sandbox, with the setting that it probably lacks; ""
// outside of a sandbox.
func (s *server) hint(output string) string {
	if s.end.Box == nil {
		return ""
	}
	if r := s.box.Load().RefusedSince(0); r != nil {
		return fmt.Sprintf("\nIt ran in a sandbox. %s If it needs that, %s", r.What, s.end.settings.advice("hosts = "+s.hosts(r.Hosts)))
	}
	setting, refused := sandbox.Needs(s.end.Argv[0], output, s.end.Box.Network, s.end.Box.Hosts)
	return fmt.Sprintf("\nIt ran in a sandbox, where it %s. If it needs more, %s", refused, s.end.settings.advice(setting))
}

// explained adds the hint to the error of a failed start, and writes it to the log.
func (s *server) explained(err error, output string) error {
	hint := s.hint(output)
	if hint == "" {
		return err
	}
	s.warn("failed to start." + hint)
	return &child.Error{Plugin: s.end.label, Code: child.CodeOf(err), Err: &cleaned{errors.New(child.Cause(err).Error() + "." + hint), err}}
}

// advice says how a person adds a setting, with the text to add.
func (s *settings) advice(setting string) string {
	name, value, _ := strings.Cut(setting, " = ")
	if s.workspace {
		return fmt.Sprintf("add this to the server in the plugin's file, and trust the plugin again:\n%q: %s", name, value)
	}
	key := s.name
	if strings.ContainsFunc(key, func(c rune) bool { return !param.IsIDRune(c) }) {
		key = strconv.Quote(key)
	}
	return fmt.Sprintf("add this to config.toml, and restart lashd:\n[mcp.%s]\n%s", key, setting)
}

// confined describes for people where the server runs.
func (e *endpoint) confined() string {
	switch s := e.settings; {
	case e.URL != "":
		return ""
	case s.own:
		return "that of the plugin"
	case s.Sandbox == manifest.ServerFullAccess:
		return `none: its settings have sandbox = "fullAccess"`
	case sandbox.Available() != nil:
		return "none: " + sandbox.Available().Error()
	}
	text := "that of the session"
	if e.settings.Sandbox == manifest.ServerReadOnly {
		text = "readOnly"
	}
	if e.settings.Network {
		text += ", with network"
	}
	if len(e.settings.Hosts) > 0 && !e.settings.Network {
		text += ", reaches " + strings.Join(e.settings.Hosts, ", ")
	}
	if len(e.settings.Write) > 0 {
		text += ", writes to " + strings.Join(e.settings.Write, ", ")
	}
	return text
}

// serverFor returns the server that may work for a call, and a function that the caller calls when the call has ended. A server in
// the sandbox of another session is never used.
func (p *Part) serverFor(m *member, call *tool.Invocation) (*server, func(), error) {
	e := m.end.in(call.Sandbox, m.end.boxFor(call))
	if e.key == m.server.end.key {
		return m.server, func() {}, nil
	}
	return m.variants.use(p, e)
}
