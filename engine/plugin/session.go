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

// Session combines the plugins of one session: their instances (roster) and everything they registered (contributions).
// It is built once by Host.Open and does not change while it is open; state lives in the plugins. Methods may be called
// from several goroutines, but the engine serializes turns, commands and captures itself. The opener calls Close.
type Session struct {
	*roster
	contributions
	host    *Host
	once    sync.Once // guards Close
	gone    bool      // Host.Open gave up on it; guarded by host.live.mu
	root    bool      // it has no parent session
	options protocol.PluginOptions
}

func newSession(h *Host, options protocol.PluginOptions, bc BuildContext) *Session {
	built := &roster{session: bc.SessionID, loaded: map[string]bool{}}
	return &Session{roster: built, contributions: contributionsTo(built), host: h, root: bc.Root(), options: options}
}

// instance is a plugin built for the session, with the id of its factory.
type instance struct {
	id string
	Plugin
}

// ErrNoDriverMade means that the factory of a protocol plugin built a plugin without a driver.
var ErrNoDriverMade = errors.New("registers no protocol driver")

// BuildError means that a plugin keeps the session from opening: its options or its registrations are invalid.
type BuildError struct {
	Plugin string
	Err    error
}

func (e *BuildError) Error() string { return fmt.Sprintf("plugin %s: %v", e.Plugin, e.Err) }

func (e *BuildError) Unwrap() error { return e.Err }

// open builds the plugins in order. The first one must register the driver. It stops between two plugins when ctx is
// done. step names the plugin that runs, for the goroutine that waits.
func (s *Session) open(ctx context.Context, step *step, factories []Factory, options protocol.PluginOptions, bc BuildContext) error {
	for _, f := range factories {
		if l, ok := f.(Loaded); ok {
			s.loaded[f.ID()] = l.Sandboxed()
		}
		if o, ok := f.(Outsider); ok {
			s.outsiders = append(s.outsiders, o)
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

// build builds one plugin and registers its contributions.
func (s *Session) build(step *step, f Factory, ctx BuildContext) error {
	step.set(HookBuild, f.ID())
	p, err := contain(func() (Plugin, error) { return f.Build(ctx) })
	switch {
	case err != nil:
		return err
	case missing(p):
		return errNoPlugin
	}
	s.plugins = append(s.plugins, instance{f.ID(), p})
	step.set(HookRegister, f.ID())
	return s.register(f.ID(), p)
}

var errNoPlugin = errors.New("Build returned no plugin")

// register calls Register of a plugin. Afterwards its Registrar writes to a discarded value, so a plugin that keeps it
// changes nothing.
func (s *Session) register(id string, p Plugin) error {
	r := &Registrar{owner: id, into: &s.contributions}
	_, err := contain(func() (struct{}, error) { return struct{}{}, p.Register(r) })
	r.into = &contributions{}
	return cmp.Or(err, r.err)
}

// ready calls Ready of the plugins that have it. The session is already listed under its id.
func (s *Session) ready(step *step) error {
	for _, p := range s.plugins {
		r, ok := p.Plugin.(Readier)
		if !ok {
			continue
		}
		step.set(HookReady, p.id)
		if _, err := contain(func() (struct{}, error) { return struct{}{}, r.Ready(s.session, s.host) }); err != nil {
			return &BuildError{p.id, fmt.Errorf("ready: %w", err)}
		}
	}
	return nil
}

// ID returns the session's id; empty for a session that is not listed.
func (s *Session) ID() protocol.SessionID { return s.session }

// Driver returns the session's driver with a time limit of ten seconds for each call. A call that takes longer panics
// with a AbandonedError, and so does every later call.
func (s *Session) Driver() turn.Driver { return bounded{s, s.driver.do} }

// Close runs the Closed hooks, closes the plugins in reverse order, frees the session's id and returns all errors
// joined. Only the first call does anything.
//
// All plugins together get ten seconds. A close that takes longer is abandoned: Close returns a AbandonedError, and the
// plugins after it are closed once it returns. A plugin with an abandoned call is closed when that call has returned.
func (s *Session) Close() (err error) {
	s.once.Do(func() {
		defer s.host.use.leave()
		defer s.host.live.remove(s)
		ctx, cancel := context.WithTimeoutCause(context.Background(), shortTimeout, ErrLate)
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

// closeAll closes everything in reverse order of registration. step names the plugin that runs.
func (s *Session) closeAll(step *step) error {
	var errs []error
	for _, h := range slices.Backward(s.closed) {
		step.set(HookClose, h.plugin)
		errs = append(errs, callClose(h.plugin, h.do))
	}
	for _, p := range slices.Backward(s.plugins) {
		step.set(HookClose, p.id)
		// A delayed close runs after Close has returned, so its error has no receiver.
		if !s.abandoned.whenReturned(p.id, func() { _ = p.close() }) {
			errs = append(errs, p.close())
		}
	}
	return errors.Join(errs...)
}

// Leave frees the session's id without closing the session, so that another instance can open.
func (s *Session) Leave() { s.host.live.remove(s) }

// Return takes the id again after Leave. It fails with ErrOpen if another session has taken it.
func (s *Session) Return() error { return s.host.live.add(s) }

// From returns the host that opened the session.
func (s *Session) From() *Host { return s.host }

func (p instance) close() error {
	c, ok := p.Plugin.(Closer)
	if !ok {
		return nil
	}
	return callClose(p.id, c.Close)
}

// callClose runs a close function and attributes its error to the plugin.
func callClose(plugin string, f func() error) error {
	if _, err := contain(func() (struct{}, error) { return struct{}{}, f() }); err != nil {
		return fmt.Errorf("plugin %s: close: %w", plugin, err)
	}
	return nil
}
