package mcp

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// Config describes the MCP servers of one plugin, or of a client. Optional fields may be zero.
type Config struct {
	Plugin   string // the plugin's ID; required
	Root     string // the plugin's directory, absolute; required unless Literal
	Data     string // directory for the plugin's own files; empty: none
	Digest   string // of the plugin
	Servers  map[string]manifest.Server
	Known    map[string]List    // lists of an earlier Part with the same digest; these servers do not start until they are used
	Confine  *child.Confinement // limits and sandbox of programs; nil: none
	Approval child.Approval     // nil: programs need no approval
	Output   *child.Log         // log for the servers' output; nil: a new one
	// Workspace is set for a plugin of a workspace. The user's configuration then has no settings for its servers.
	Workspace bool
	Dir       string // workspace in which the servers run, without links; empty: they run in the plugin's or the home directory
	Literal   bool   // no variables are replaced, and values of env and headers are secret, because a client sent them

	// Changed is called when the plugin's tools differ from those after Start, so that sessions
	// fetch them again. It may be called on several goroutines at once. May be nil.
	Changed func(context.Context)

	// Health is called when a server becomes quarantined or unreachable, or works again. It must
	// not wait for the servers. May be nil.
	Health func()
}

// Part is the MCP servers of one plugin. It offers their tools as a tool.Provider. The servers are
// shared: Parts with the same endpoint use the same connection.
type Part struct {
	config  Config
	pool    *Pool
	members []*member             // sorted by name
	started atomic.Bool           // Start has returned
	offer   atomic.Pointer[offer] // the current tools

	composing sync.Mutex // held while the tools are computed
}

// member is one server under its name in the plugin.
type member struct {
	name     string
	end      *endpoint // without a sandbox
	server   *server   // lists the tools; also works for sessions whose sandbox is the same
	known    *List     // list from an earlier run; nil: none
	variants variants  // servers for other sessions
}

// listed returns the newest list of the server; nil: none yet.
func (m *member) listed() *List {
	if lists := m.lists(); len(lists) > 0 {
		return lists[0]
	}
	return nil
}

// lists returns the newest lists of all processes of the server. A process can have more tools than others after it was used.
func (m *member) lists() (all []*List) {
	first := m.server.list.Load()
	if first == nil {
		first = m.known
	}
	if first != nil {
		all = append(all, first)
	}
	for _, s := range m.variants.servers() {
		if list := s.list.Load(); list != nil {
			all = append(all, list)
		}
	}
	return all
}

// add takes a server from the pool.
func (p *Part) add(name string, e *endpoint) error {
	s, err := p.pool.use(e.in(protocol.SandboxReadOnly, p.pool.listing(e)), p)
	if err != nil {
		return err
	}
	m := &member{name: name, end: e, server: s}
	if list, ok := p.config.Known[name]; ok {
		m.known = &list
	}
	p.members = append(p.members, m)
	return nil
}

// Start connects the servers whose tools are not known yet. It returns when each has answered or
// failed, shortly after Times.Connect at the latest. Failed servers are retried in the background;
// Changed is called when one connects.
func (p *Part) Start(ctx context.Context) {
	var all sync.WaitGroup
	for _, m := range p.members {
		if m.listed() == nil {
			all.Go(func() { p.reach(ctx, m.server) })
		}
	}
	all.Wait()
	p.started.Store(true)
	p.compose()
}

// reach connects a server, or starts retrying.
func (p *Part) reach(ctx context.Context, s *server) {
	if _, err := s.ready(ctx); err != nil {
		s.retry(ctx)
	}
}

// changed computes the tools again after the list of a server has changed.
func (p *Part) changed(ctx context.Context) {
	p.compose()
	if p.config.Changed != nil && p.started.Load() {
		p.config.Changed(ctx)
	}
}

// Spec returns what the plugin's servers add to a session: tools. It does no I/O.
func (p *Part) Spec(plugin.BuildContext) (plugin.Spec, error) {
	return func(r *plugin.Registrar) error {
		r.Tools().Add(p)
		return nil
	}, nil
}

// Tools implements tool.Provider.
func (p *Part) Tools() []tool.Tool { return p.offer.Load().tools }

// Execute implements tool.Provider. A failure of the server becomes a failed output with the
// error's code, which the model reads. Only the end of ctx, and a tool that no longer exists, are
// errors.
func (p *Part) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	b := p.offer.Load().bindings[call.ToolID]
	if b == nil {
		return tool.Result{}, fmt.Errorf("the servers of the plugin %s no longer have the tool %s", p.config.Plugin, call.ToolID)
	}
	if b.login {
		return b.server.server.authorize(ctx, &call)
	}
	s, left, err := p.serverFor(b.server, &call)
	if err != nil {
		return tool.Result{}, fmt.Errorf("use the server %s of the plugin %s: %w", b.server.name, p.config.Plugin, err)
	}
	defer left()
	changes, began := s.watch(), time.Now()
	answer, err := s.call(ctx, b.name, &call)
	found := changes()
	var out protocol.ToolOutput
	switch {
	case err == nil:
		out = output(ctx, answer, &call)
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	default:
		out = child.Failure(err, b.tool.Contract.Replay)
	}
	if found != "" {
		out.Text += "\n" + found
	}
	refused, text := s.refusedSince(began)
	out.Text += text
	return tool.Result{Output: out, Refused: refused}, nil
}

// Resume ends quarantines and retries servers whose tools are unknown.
func (p *Part) Resume(ctx context.Context) {
	for _, m := range p.members {
		m.server.super.Resume()
		for _, s := range m.variants.servers() {
			s.super.Resume()
		}
		if m.listed() == nil {
			m.server.retry(ctx)
		}
	}
}

// Restart ends the processes or connections of a server, and starts those again that ran, at least the one that lists the tools. It returns
// the state after that. The other servers of the plugin go on. Calls in progress fail. It fails with ErrNoServer.
func (p *Part) Restart(ctx context.Context, name string) (ServerStatus, error) {
	m := p.member(name)
	if m == nil {
		return ServerStatus{}, noServer(name)
	}
	var all sync.WaitGroup
	for _, s := range append(m.variants.servers(), m.server) {
		if ran := s.hangUp(ctx); ran || s == m.server {
			all.Go(func() { _, _ = s.ready(ctx) }) // its state has the error
		}
	}
	all.Wait()
	if m.listed() == nil {
		m.server.retry(ctx)
	}
	return m.status(), nil
}

// Known returns the lists of the servers, for Config.Known of a later run.
func (p *Part) Known() map[string]List {
	known := map[string]List{}
	for _, m := range p.members {
		if list := m.listed(); list != nil {
			known[m.name] = *list
		}
	}
	return known
}

// Shutdown releases the servers. It ends those without other users and returns when nothing of them
// is left, or soon after ctx ends.
func (p *Part) Shutdown(ctx context.Context) error {
	p.release(ctx)
	return nil
}

// release gives all servers back to the pool.
func (p *Part) release(ctx context.Context) {
	var all sync.WaitGroup
	for _, m := range p.members {
		all.Go(func() { p.pool.leave(ctx, m.server, p) })
		all.Go(func() { m.variants.close(ctx, p) })
	}
	all.Wait()
}
