package process

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// Factory implements plugin.Factory. It creates the plugin's instance for each session and owns the
// process that serves all of them. The supervisor starts the process on first use.
//
// Lock order: an instance's mu before Factory.mu. Neither is held during a call to the process. All
// methods are safe for concurrent use.
type Factory struct {
	config Config
	// readOnly runs the process of sessions whose commands only read; nil: this one writes nothing that theirs must not.
	readOnly *Factory
	super    *child.Supervisor[*life]
	running  sync.WaitGroup // goroutines of the factory
	tell     func()         // logs the first start

	mu    sync.Mutex
	used  bool                 // a session has used the process
	seats map[string]*instance // instances by their ID in the process
	last  int64                // number of the newest ID
}

// New checks a configuration and returns its Factory. It starts nothing. The caller calls Shutdown.
func New(c Config) (*Factory, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	f := newFactory(c)
	if held := c.Confine.ReadOnly(); held != c.Confine {
		c.Confine = held
		f.readOnly = newFactory(c)
	}
	return f, nil
}

// newFactory returns a Factory with one process, for a configuration that was checked.
func newFactory(c Config) *Factory {
	f := &Factory{config: c, seats: map[string]*instance{}}
	f.tell = sync.OnceFunc(func() { c.Log.Info("plugin started", "version", c.Version, "sandbox", f.Sandbox()) })
	f.super = &child.Supervisor[*life]{Plugin: c.ID, Launch: f.launch, Report: c.Quarantined, Tireless: c.Tireless}
	return f
}

// ID implements plugin.Factory.
func (f *Factory) ID() string { return f.config.ID }

// Extensions implements plugin.Extender.
func (f *Factory) Extensions() []plugin.Extension {
	return slices.Clone(f.config.Contributes.Extensions)
}

// Sandbox describes the sandbox of the process for people: "landlock abi 7", or "none" with the
// reason. It says if the sandbox has no process namespace.
func (f *Factory) Sandbox() string {
	if !f.config.sandboxed() {
		return "none: the plugin does not request one"
	}
	return proc.Describe()
}

// Sandboxed implements plugin.Loaded. It is true for a plugin that requests a sandbox, even on a
// system without one: its rights are limited to those of the sandbox in any case.
func (f *Factory) Sandboxed() bool { return f.config.sandboxed() }

// Outside implements plugin.Outsider.
func (f *Factory) Outside(mode protocol.SandboxMode) []plugin.Program {
	if f.config.Outside == nil {
		return nil
	}
	return f.config.Outside(mode)
}

// Start starts the process and waits for its handshake.
func (f *Factory) Start(ctx context.Context) error {
	_, err := f.super.Use(ctx)
	return err
}

// Status returns the state of the process, or that of read-only sessions if no other session uses the plugin. It never starts a process.
func (f *Factory) Status() *protocol.PluginProcess {
	is := f.status()
	if f.readOnly != nil && is.State == "idle" {
		return f.readOnly.status()
	}
	return is
}

// status returns the state of one process.
func (f *Factory) status() *protocol.PluginProcess {
	l, standing := f.super.Look()
	is := &protocol.PluginProcess{State: "idle", Sandbox: f.Sandbox()}
	switch {
	case l != nil:
		is.State = "running"
	case standing.Quarantined:
		is.State = "quarantined"
	case standing.Resumed:
		is.State = "resumed"
	case standing.Starting:
		is.State = "starting"
	case standing.Reason != nil:
		is.State = "failed"
	}
	if standing.Reason != nil {
		is.Error = standing.Reason.Error()
	}
	return is
}

// Resume ends the quarantine of a process that crashed too often.
func (f *Factory) Resume() {
	f.super.Resume()
	if f.readOnly != nil {
		f.readOnly.Resume()
	}
}

// Build implements plugin.Factory.
func (f *Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	i := newInstance(f.processFor(ctx.Sandbox), ctx)
	if f.config.Also != nil {
		var err error
		if i.also, err = f.config.Also(ctx); err != nil {
			return nil, err
		}
	}
	if f.config.Contributes.State == "" {
		return i, nil
	}
	return &stateful{i}, nil
}

// processFor returns the Factory with the process for sessions whose commands have a mode.
func (f *Factory) processFor(mode protocol.SandboxMode) *Factory {
	if mode == protocol.SandboxReadOnly && f.readOnly != nil {
		return f.readOnly
	}
	return f
}

// Shutdown implements plugin.Shutdowner. It stops the process and returns when nothing of it is
// left. After ctx ends, that takes at most Deadlines.Terminate.
func (f *Factory) Shutdown(ctx context.Context) error {
	if f.readOnly != nil {
		f.running.Go(func() { _ = f.readOnly.Shutdown(ctx) }) // it returns no error
	}
	if l := f.super.Close(); l != nil {
		l.stop(ctx, f.config.Deadlines.Stop)
	}
	f.running.Wait()
	f.config.Output.Flush()
	return nil
}

// seat assigns an instance an ID in the process.
func (f *Factory) seat(i *instance) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	id := "ins_" + strconv.FormatInt(f.last, 10)
	f.seats[id] = i
	return id
}

// unseat releases the ID of an instance.
func (f *Factory) unseat(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seats, id)
}

// seated returns the instance with an ID; nil: none.
func (f *Factory) seated(id string) *instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seats[id]
}

// lost detaches all instances from a process that has ended.
func (f *Factory) lost(l *life) {
	f.mu.Lock()
	var all []*instance
	for _, i := range f.seats {
		all = append(all, i)
	}
	f.mu.Unlock()
	for _, i := range all {
		i.lost(l)
	}
}
