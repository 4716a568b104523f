package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"lashd/rpc/protocol"
)

// Host holds the factories of one generation of plugins, in the order in which they register, and knows the open
// sessions. When plugins are reloaded the daemon makes a new host with With and retires the old one; both share live,
// so an id is never open twice. Safe for concurrent use: only live and use change after NewHost, and each has its own
// lock.
type Host struct {
	drivers    []Factory // a session uses exactly one
	plugins    []Factory // a session uses all
	extensions Extensions
	engines    map[string]ProcessEngine    // by kind
	live       *openSessions               // shared with hosts made by With
	use        *use                        // counts the sessions of this host, for Retire
	stop       func(context.Context) error // shuts down all factories, once
}

// NewHost returns a host of drivers, of which a session uses exactly one, and plugins, of which it uses all. Two
// factories with the same id are an error. NewHost asks every factory for its extensions, and then for its process
// engines. The caller calls Shutdown at the end.
func NewHost(drivers, plugins []Factory) (*Host, error) {
	h := &Host{drivers: slices.Clone(drivers), plugins: slices.Clone(plugins), live: &openSessions{}, use: &use{}}
	all := h.factories()
	seen := map[string]bool{}
	for _, f := range all {
		if seen[f.ID()] {
			return nil, fmt.Errorf("plugin host: two plugins have the id %q", f.ID())
		}
		seen[f.ID()] = true
	}
	h.extensions = extensionsOf(all)
	engines, err := enginesOf(all, h.extensions)
	if err != nil {
		return nil, fmt.Errorf("plugin host: %w", err)
	}
	h.engines, h.stop = engines, once(all)
	return h, nil
}

// With returns a host with the same drivers, and the same plugins except without, followed by more. Both hosts share
// the open sessions. Shutdown of each host covers its own factories, so a factory in both is shut down by both.
func (h *Host) With(more []Factory, without ...string) (*Host, error) {
	kept := Stack(h.plugins)
	kept.Retain(func(f Factory) bool { return !slices.Contains(without, f.ID()) })
	other, err := NewHost(h.drivers, slices.Concat(kept, more))
	if err == nil {
		other.live = h.live
	}
	return other, err
}

func (h *Host) factories() []Factory { return slices.Concat(h.drivers, h.plugins) }

// IDs returns the ids of the plugins except drivers, in the order in which they register.
func (h *Host) IDs() []string { return Stack(h.plugins).IDs() }

// Extensions returns a copy of the data that the factories offer each other.
func (h *Host) Extensions() Extensions { return own(h.extensions) }

// ProcessEngine returns the process engine of a kind.
func (h *Host) ProcessEngine(kind string) (ProcessEngine, bool) {
	e, ok := h.engines[kind]
	return e, ok
}

// Open builds the plugins of one session, the driver first, adds the session to the open ones and then calls Ready of
// its plugins. On an error it closes the plugins built so far and frees the id. The caller must call Close.
//
// A session without an id is not listed. Open fails with ErrRetired if a newer host has replaced this one. If a plugin
// does not return in time, Open gives up with a AbandonedError, and closes the session in the background once the plugin
// returns.
func (h *Host) Open(ctx context.Context, driver string, options protocol.PluginOptions, bc BuildContext) (*Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !h.use.enter() {
		return nil, ErrRetired
	}
	i := slices.IndexFunc(h.drivers, func(f Factory) bool { return f.ID() == driver })
	if i < 0 {
		h.use.leave()
		return nil, NoDriver(driver, h.Drivers())
	}
	bc.Extensions = h.Extensions()
	s := newSession(h, options, bc)
	var step step
	done := begin(func() (struct{}, error) {
		err := s.open(ctx, &step, append([]Factory{h.drivers[i]}, h.plugins...), options, bc)
		if err == nil {
			err = h.publish(&step, s)
		}
		return struct{}{}, err
	})
	switch a, returned := inTime(ctx, limitsOf(HookBuild), done); {
	case !returned:
		h.live.forbid(s)
		go func() {
			<-done
			_ = s.Close() // the caller is gone: there is no one to report an error to
		}()
		return nil, step.left(ctx)
	case a.err != nil:
		return nil, errors.Join(a.err, s.Close())
	}
	return s, nil
}

// publish adds the session to the open ones, then tells its plugins.
func (h *Host) publish(step *step, s *Session) error {
	if err := h.live.add(s); err != nil {
		return err
	}
	return s.ready(step)
}

// OpenFrom opens a session and restores its stored state. It also returns the ids of stored entries whose plugin does
// not exist. The session ignores these entries; the caller must preserve them when it saves.
func (h *Host) OpenFrom(ctx context.Context, st Stored, driver string, options protocol.PluginOptions, bc BuildContext) (*Session, []string, error) {
	s, err := h.Open(ctx, driver, options, bc)
	if err != nil {
		return nil, nil, err
	}
	unknown, err := s.TakeBack(ctx, st)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, unknown, nil
}

// Shutdown shuts down all factories, drivers first, and returns the first error. Only the first call does anything;
// later calls return its result. A factory that does not return soon after ctx is done is abandoned. Call it after the
// last session is closed.
func (h *Host) Shutdown(ctx context.Context) error { return h.stop(ctx) }

// once returns a function that shuts the factories down on its first call.
func once(factories []Factory) func(context.Context) error {
	var done sync.Once
	var first error
	return func(ctx context.Context) error {
		done.Do(func() { first = shutdown(ctx, factories) })
		return first
	}
}

func shutdown(ctx context.Context, factories []Factory) (first error) {
	for _, f := range factories {
		x, ok := f.(Shutdowner)
		if !ok {
			continue
		}
		a, returned := inTime(ctx, limits{grace: grace}, begin(func() (struct{}, error) { return struct{}{}, x.Shutdown(ctx) }))
		if !returned {
			a.err = context.Cause(ctx)
		}
		if a.err != nil && first == nil {
			first = fmt.Errorf("plugin %s: shutdown: %w", f.ID(), a.err)
		}
	}
	return first
}
