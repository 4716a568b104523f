package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"lashd/rpc/protocol"
)

// Host holds the factories of a daemon, in the order in which they register, and knows the sessions that are open.
type Host struct {
	drivers    []Factory
	plugins    []Factory
	extensions Extensions
	engines    map[string]ProcessEngine
	live       *openSessions
	use        *use
	stop       func(context.Context) error
}

// ErrNoDriver means that no factory makes the driver that a session asks for.
var ErrNoDriver = errors.New("no such driver")

// NewHost takes the protocol plugins, of which a session uses exactly one, and the others, of which it uses all. Two
// factories of one id are an error. The factories are asked once for extensions, and then for process engines.
func NewHost(drivers, plugins []Factory) (*Host, error) {
	h := &Host{drivers: slices.Clone(drivers), plugins: slices.Clone(plugins), live: &openSessions{}, use: &use{}}
	all := h.factories()
	seen := map[string]bool{}
	for _, f := range all {
		if seen[f.ID()] {
			return nil, fmt.Errorf("plugin host: two factories have the id %q", f.ID())
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

// With makes a host of the same drivers and plugins, without some and with more after them, that knows the sessions of h, too.
// Shutdown of either shuts down what both have.
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

// Drivers are the names that a session's configuration may choose from.
func (h *Host) Drivers() []string {
	ids := Stack(h.drivers).IDs()
	slices.Sort(ids)
	return ids
}

// IDs are the ids of the plugins that are no drivers, in the order in which they register.
func (h *Host) IDs() []string { return Stack(h.plugins).IDs() }

// Extensions are what the factories offer each other.
func (h *Host) Extensions() Extensions { return own(h.extensions) }

// ProcessEngine finds the process engine of a kind.
func (h *Host) ProcessEngine(kind string) (ProcessEngine, bool) {
	e, ok := h.engines[kind]
	return e, ok
}

// Open builds the plugins of one session, the driver first, makes the session known, and tells the plugins so. If
// anything fails, those built are closed, there is no session, and its id is free. The caller closes the session. A session
// without an id is not known to anybody. It fails with ErrRetired if another host has taken this one's place. One that does not
// return in time is left alone, as hooks are, and closed when it does.
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
		return nil, fmt.Errorf("driver %q: %w", driver, ErrNoDriver)
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
		h.live.bar(s)
		go func() {
			<-done
			_ = s.Close() // nobody wants to know any more
		}()
		return nil, step.left(ctx)
	case a.err != nil:
		return nil, errors.Join(a.err, s.Close())
	}
	return s, nil
}

func (h *Host) publish(step *step, s *Session) error {
	if err := h.live.add(s); err != nil {
		return err
	}
	return s.ready(step)
}

// OpenFrom opens a session and has it take back what is stored. It also gives the ids of entries that no plugin has: the
// session cannot use them, and whoever saves it carries them on.
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

// Shutdown tells every factory that wants to know that the daemon ends, those of protocol plugins first, and gives the
// first error. It does so once; later calls give the same answer. One that does not return although ctx is done is left alone.
func (h *Host) Shutdown(ctx context.Context) error { return h.stop(ctx) }

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
