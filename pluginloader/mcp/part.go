package mcp

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
)

// Config is what a Part needs to know of a plugin.
type Config struct {
	Plugin   string // required: its id
	Root     string // its directory, absolute; required, unless it is literal
	Data     string // where it may keep files; empty: nowhere
	Digest   string // of what is in the directory
	Servers  map[string]manifest.Server
	Known    map[string]List    // of servers that were asked before, as Known gave them for the same digest: they are not started for it
	Confine  *child.Confinement // what the programs are held to; nil: to nothing
	Approval child.Approval     // nil: nobody has to approve the programs
	Output   *child.Log         // takes what the servers say; nil: one of its own
	Literal  bool               // nothing is put in, and values of env and headers are secret: a client has brought the servers

	// Changed is told that the plugin offers other tools than when Start returned. Sessions have to ask for them again. It may
	// be called from several goroutines. Nil: nobody is told.
	Changed func(context.Context)

	// Health is told that a server is quarantined or unreachable, or works again. It must not wait for the servers. Nil: nobody is told.
	Health func()
}

// Part has the MCP servers of one plugin, and makes tools of theirs.
type Part struct {
	config  Config
	pool    *Pool
	members []*member // in order of name
	started atomic.Bool
	offer   atomic.Pointer[offer]

	composing sync.Mutex
}

// member is a server of the plugin.
type member struct {
	name   string
	server *server
	known  *List // from before; nil: nothing is known
}

func (m *member) listed() *List {
	if list := m.server.list.Load(); list != nil {
		return list
	}
	return m.known
}

func (p *Part) add(name string, e *endpoint) error {
	s, err := p.pool.use(e, p)
	if err != nil {
		return err
	}
	m := &member{name: name, server: s}
	if list, ok := p.config.Known[name]; ok {
		m.known = &list
	}
	p.members = append(p.members, m)
	return nil
}

// Start connects the servers whose tools are not known, and asks for these. It returns when each has answered or failed, at the
// latest a moment after the time to connect is over. One that has failed is tried again, in the background, and Changed is told when it
// is there.
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

func (p *Part) reach(ctx context.Context, s *server) {
	if _, err := s.ready(ctx); err != nil {
		s.retry(ctx)
	}
}

// changed hears that a server has another list.
func (p *Part) changed(ctx context.Context) {
	p.compose()
	if p.config.Changed != nil && p.started.Load() {
		p.config.Changed(ctx)
	}
}

// Spec gives what sessions get of the plugin: tools. It does no IO.
func (p *Part) Spec(plugin.BuildContext) (plugin.Spec, error) {
	return func(r *plugin.Registrar) error {
		r.Tools().Add(p)
		return nil
	}, nil
}

// Tools implements tool.Provider.
func (p *Part) Tools() []tool.Tool { return p.offer.Load().tools }

// Execute implements tool.Provider. What the server fails at is a failure of the call, with the error's code.
func (p *Part) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	b := p.offer.Load().bindings[call.ToolID]
	if b == nil {
		return tool.Result{}, fmt.Errorf("the servers of the plugin %s no longer have the tool %s", p.config.Plugin, call.ToolID)
	}
	if b.login {
		return b.server.server.authorize(ctx, &call)
	}
	answer, err := b.server.server.call(ctx, b.name, &call)
	switch {
	case err == nil:
		return tool.Result{Output: output(ctx, answer, &call)}, nil
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	}
	return tool.Result{Output: child.Failure(err, b.tool.Contract.Replay)}, nil
}

// Resume lets servers be started that have crashed too often, and tries those that have failed.
func (p *Part) Resume(ctx context.Context) {
	for _, m := range p.members {
		m.server.super.Resume()
		if m.listed() == nil {
			m.server.retry(ctx)
		}
	}
}

// Known is what is known of the servers, to be given to the Part of a later run.
func (p *Part) Known() map[string]List {
	known := map[string]List{}
	for _, m := range p.members {
		if list := m.listed(); list != nil {
			known[m.name] = *list
		}
	}
	return known
}

// Shutdown lets go of the servers. It returns when nothing is left of those that nobody else uses, or soon after ctx is done.
func (p *Part) Shutdown(ctx context.Context) error {
	p.release(ctx)
	p.config.Output.Flush()
	return nil
}

func (p *Part) release(ctx context.Context) {
	var all sync.WaitGroup
	for _, m := range p.members {
		all.Go(func() { p.pool.leave(ctx, m.server, p) })
	}
	all.Wait()
}
