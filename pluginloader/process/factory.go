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

// Factory makes the plugin of each session, and has the process that serves them all.
type Factory struct {
	config  Config
	super   *child.Supervisor[*life]
	running sync.WaitGroup
	tell    func() // of the first start

	mu    sync.Mutex
	used  bool                 // a session has asked for the process
	seats map[string]*instance // the instances that the process knows, by the id it knows them by
	last  int64                // id given
}

// New makes a Factory of a plugin. It starts nothing.
func New(c Config) (*Factory, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	f := &Factory{config: c, seats: map[string]*instance{}}
	f.tell = sync.OnceFunc(func() { c.Log.Info("the plugin is started", "version", c.Version, "sandbox", f.Sandbox()) })
	f.super = &child.Supervisor[*life]{Plugin: c.ID, Launch: f.launch, Report: c.Quarantined}
	return f, nil
}

// ID implements plugin.Factory.
func (f *Factory) ID() string { return f.config.ID }

// Extensions implements plugin.Extender.
func (f *Factory) Extensions() []plugin.Extension {
	return slices.Clone(f.config.Contributes.Extensions)
}

// Sandbox says what the process is confined to files by: "landlock abi 7", or "none" with the reason.
func (f *Factory) Sandbox() string {
	if f.config.held == nil || f.config.held.Sandbox == nil {
		return "none: the plugin does not request one"
	}
	return proc.Confines().String()
}

// Sandboxed implements plugin.Loaded. Where the system has no sandbox, what the plugin asks for is still held to the one that it asked for.
func (f *Factory) Sandboxed() bool { return f.config.sandboxed() }

// Start starts the process, and waits until it has shown that it is the plugin that was declared.
func (f *Factory) Start(ctx context.Context) error {
	_, err := f.super.Use(ctx)
	return err
}

// Status is how the process is now.
func (f *Factory) Status() *protocol.PluginProcess {
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

// Resume lets a plugin be started that has crashed too often.
func (f *Factory) Resume() { f.super.Resume() }

// Build implements plugin.Factory.
func (f *Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	i := newInstance(f, ctx)
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

// Shutdown implements plugin.Shutdowner: it stops the process, and returns when nothing is left of it. Once ctx is done that
// takes no longer than from SIGTERM to SIGKILL.
func (f *Factory) Shutdown(ctx context.Context) error {
	if l := f.super.Close(); l != nil {
		l.stop(ctx, f.config.Deadlines.Stop)
	}
	f.running.Wait()
	f.config.Output.Flush()
	return nil
}

// seat gives an instance an id of its own in the process.
func (f *Factory) seat(i *instance) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	id := "ins_" + strconv.FormatInt(f.last, 10)
	f.seats[id] = i
	return id
}

func (f *Factory) unseat(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seats, id)
}

func (f *Factory) seated(id string) *instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seats[id]
}

// lost takes the instances out of a process that has ended.
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
