package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// Session is what the plugins of one session contribute together. What it consists of does not change once it is open, and
// it may be used from several goroutines.
type Session struct {
	*roster
	contributions
	host    *Host
	once    sync.Once // of Close
	gone    bool      // from its host; guarded by host.live.mu
	root    bool
	options protocol.PluginOptions
}

func newSession(h *Host, options protocol.PluginOptions, bc BuildContext) *Session {
	built := &roster{session: bc.SessionID, loaded: map[string]bool{}}
	return &Session{roster: built, contributions: contributionsTo(built), host: h, root: bc.Root(), options: options}
}

// instance is the plugin that a factory has built for the session.
type instance struct {
	id string
	Plugin
}

// ErrNoDriverMade means that a factory of protocol plugins built one that has no driver.
var ErrNoDriverMade = errors.New("registers no protocol driver")

// BuildError is a plugin with which no session can be opened: its options are wrong, or what it registers.
type BuildError struct {
	Plugin string
	Err    error
}

func (e *BuildError) Error() string { return fmt.Sprintf("plugin %s: %v", e.Plugin, e.Err) }

func (e *BuildError) Unwrap() error { return e.Err }

// open builds plugins in order; the first is the one that must bring the driver. It ends between two of them if ctx does.
func (s *Session) open(ctx context.Context, step *step, factories []Factory, options protocol.PluginOptions, bc BuildContext) error {
	for _, f := range factories {
		if l, ok := f.(Loaded); ok {
			s.loaded[f.ID()] = l.Sandboxed()
		}
		bc.Options = own(options[f.ID()])
		if err := s.build(step, f, bc); err != nil {
			return &BuildError{f.ID(), err}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.driver == nil {
			return &BuildError{f.ID(), ErrNoDriverMade}
		}
	}
	s.sort()
	return s.checkTools(step)
}

func (s *Session) build(step *step, f Factory, ctx BuildContext) error {
	step.is(HookBuild, f.ID())
	p, err := contain(func() (Plugin, error) { return f.Build(ctx) })
	switch {
	case err != nil:
		return err
	case missing(p):
		return errNoPlugin
	}
	s.plugins = append(s.plugins, instance{f.ID(), p})
	step.is(HookRegister, f.ID())
	return s.register(f.ID(), p)
}

var errNoPlugin = errors.New("builds no plugin")

// register lets a plugin contribute. What it does with the registrar later changes nothing.
func (s *Session) register(id string, p Plugin) error {
	r := &Registrar{owner: id, into: &s.contributions}
	_, err := contain(func() (struct{}, error) { return struct{}{}, p.Register(r) })
	r.into = &contributions{}
	return cmp.Or(err, r.err)
}

// ready tells every plugin that wants to know that the session can be found.
func (s *Session) ready(step *step) error {
	for _, p := range s.plugins {
		r, ok := p.Plugin.(Readier)
		if !ok {
			continue
		}
		step.is(HookReady, p.id)
		if _, err := contain(func() (struct{}, error) { return struct{}{}, r.Ready(s.session, s.host) }); err != nil {
			return &BuildError{p.id, fmt.Errorf("ready: %w", err)}
		}
	}
	return nil
}

// ID is the session's id.
func (s *Session) ID() protocol.SessionID { return s.session }

// Driver is the session's driver. One that takes longer than ten seconds is left alone: it panics with a LeftError then, and
// whenever it is asked again.
func (s *Session) Driver() turn.Driver { return bounded{s, s.driver.do} }

// Close closes every plugin that wants it, the last one first, makes the session's id free, and tells of all that failed.
// It does so once. All together get ten seconds; one that has not returned by then is left alone until it does, and those
// that come after it are closed then. A plugin with a call that was left alone is closed once that has returned.
func (s *Session) Close() (err error) {
	s.once.Do(func() {
		defer s.host.use.leave()
		defer s.host.live.remove(s)
		ctx, cancel := context.WithTimeoutCause(context.Background(), shortPatience, ErrLate)
		defer cancel()
		var step step
		done := begin(func() (struct{}, error) { return struct{}{}, s.closeAll(&step) })
		a, returned := inTime(ctx, limits{grace: grace}, done)
		if err = a.err; !returned {
			err = step.left(ctx)
		}
	})
	return err
}

func (s *Session) closeAll(step *step) error {
	var errs []error
	for _, h := range slices.Backward(s.closed) {
		step.is(HookClose, h.plugin)
		errs = append(errs, closing(h.plugin, h.do))
	}
	for _, p := range slices.Backward(s.plugins) {
		step.is(HookClose, p.id)
		// What it comes to then nobody waits for any more.
		if !s.abandoned.whenReturned(p.id, func() { _ = p.close() }) {
			errs = append(errs, p.close())
		}
	}
	return errors.Join(errs...)
}

// Leave makes the session's id free before it is closed.
func (s *Session) Leave() { s.host.live.remove(s) }

// Return takes the id back that Leave has made free. It fails with ErrOpen if another session has it.
func (s *Session) Return() error { return s.host.live.add(s) }

// From is the host that the session was opened with.
func (s *Session) From() *Host { return s.host }

func (p instance) close() error {
	c, ok := p.Plugin.(Closer)
	if !ok {
		return nil
	}
	return closing(p.id, c.Close)
}

func closing(plugin string, f func() error) error {
	if _, err := contain(func() (struct{}, error) { return struct{}{}, f() }); err != nil {
		return fmt.Errorf("plugin %s: close: %w", plugin, err)
	}
	return nil
}
