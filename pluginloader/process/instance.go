package process

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// instance is the plugin in one session.
type instance struct {
	factory *Factory
	build   plugin.BuildContext
	also    plugin.Spec                 // nil: nothing
	list    atomic.Pointer[[]tool.Tool] // as the plugin has told; nil: as declared

	mu       sync.Mutex
	place    *seat     // nil: no process knows the session
	kept     *saved    // what the next process is given; nil: nothing
	code     []byte    // likewise of the code executor; nil: nothing
	dirty    bool      // cells have run since
	revision uint64    // of the state; one that it has had it never has again with other state
	newest   uint64    // that it has had
	omission *omission // from the catalog, as the plugin has said last; nil: it has not
	closed   bool
}

// seat is an instance in a process.
type seat struct {
	of    *instance
	id    string // by which the process knows it
	life  *life
	ready chan struct{} // closed when it is open, or has failed to
	err   error         // good once ready is closed
	open  bool

	said     uint64 // the revision that the plugin has told last
	fetching bool   // its list of tools
	again    bool   // the list has changed meanwhile
}

func newInstance(f *Factory, ctx plugin.BuildContext) *instance {
	return &instance{factory: f, build: ctx}
}

// open is what a plugin is told of a session.
type open struct {
	Instance string                       `json:"instance"` // in all that is said of it; a session may have two, while a restore is tried
	Session  protocol.SessionID           `json:"sessionId,omitempty"`
	Parent   protocol.SessionID           `json:"parentSessionId,omitempty"`
	Access   protocol.Authority           `json:"toolAccess"`
	Subagent *protocol.Subagent           `json:"subagent,omitempty"`
	Cwd      string                       `json:"cwd"`
	Options  json.RawMessage              `json:"options,omitempty"`
	Shared   map[string][]json.RawMessage `json:"extensions,omitempty"`
}

// enter gives the process, with the session open in it. What that takes does not count as time of a call.
func (i *instance) enter(ctx context.Context) (*seat, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, i.factory.config.Deadlines.Start, child.ErrLate)
	defer cancel()
	l, err := i.factory.use(ctx)
	if err != nil {
		return nil, err
	}
	s, err := i.sit(ctx, l)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.ready:
		return s, s.err
	case <-ctx.Done():
		return nil, i.factory.super.Impatient(ctx)
	}
}

// seated is the seat of an instance that is open in a living process; nil: it is not.
func (i *instance) seated() *seat {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.place; s != nil && s.open && s.life.alive() {
		return s
	}
	return nil
}

// sit is the instance's seat in a process; if it has none, the session is being opened there.
func (i *instance) sit(ctx context.Context, l *life) (*seat, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, l.fail(Stopped, fmt.Errorf("session %s is closed", i.build.SessionID))
	}
	if !l.alive() { // another one may be there by now, with the session in it
		return nil, l.Reason()
	}
	if i.place == nil || i.place.life != l {
		i.lostLocked()
		s := &seat{of: i, id: i.factory.seat(i), life: l, ready: make(chan struct{})}
		i.place = s
		ctx, kept, code := context.WithoutCancel(ctx), i.kept, i.code
		i.factory.running.Go(func() { i.opened(s, i.begin(ctx, s, kept, code)) })
	}
	return i.place, nil
}

// begin opens the session in a process, and gives it back what it keeps.
func (i *instance) begin(ctx context.Context, s *seat, kept *saved, code []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, i.factory.config.Deadlines.State, child.ErrLate)
	defer cancel()
	b := i.build
	i.factory.config.Output.Hide(child.SecretsInJSON(b.Options)...)
	_, err := s.life.call(ctx, "session/open", open{
		s.id, b.SessionID, b.Parent, b.Authority, b.Authority.Subagent, b.Cwd, b.Options, b.Extensions,
	}, 0)
	if err == nil && kept != nil {
		err = i.giveBack(ctx, s, kept)
	}
	if err == nil && code != nil {
		err = i.giveCode(ctx, s, code)
	}
	return err
}

// opened ends an opening. One that failed is tried again by the next use.
func (i *instance) opened(s *seat, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s.err, s.open = err, err == nil
	if err != nil && i.place == s {
		i.leaveLocked()
	}
	close(s.ready)
}

// leaveLocked takes the instance out of its process.
func (i *instance) leaveLocked() {
	if i.place == nil {
		return
	}
	i.factory.unseat(i.place.id)
	i.place.life.tell("session/close", i.of(i.place))
	i.place = nil
}

// lost takes the instance out of a process that has ended.
func (i *instance) lost(l *life) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.place != nil && i.place.life == l {
		i.lostLocked()
	}
}

// lostLocked goes back to what the plugin has written: the rest is gone with the process.
func (i *instance) lostLocked() {
	if i.place == nil {
		return
	}
	if was := i.kept.at(); i.revision != was {
		i.factory.config.Log.Warn("state that was not stored is lost with the plugin", "session", i.build.SessionID)
		i.revision = was
	}
	i.dirty = false
	i.leaveLocked()
}

// Close implements plugin.Closer.
func (i *instance) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.leaveLocked()
	return nil
}

// of is what a message about an instance begins with.
type of struct {
	Instance string             `json:"instance"`
	Session  protocol.SessionID `json:"sessionId,omitempty"`
}

func (i *instance) of(s *seat) of { return of{s.id, i.build.SessionID} }

// ask has the plugin do something for the session, with what g grants. The answer has to fit, in time.
func ask[R any](ctx context.Context, i *instance, method string, limit time.Duration, g *grant, params func(*seat, until) any) (*R, error) {
	return asked[R](ctx, i, method, limit, 0, g, params)
}

// until is the part of a call that is about what it may do, and how long.
type until struct {
	Grant      string `json:"grant,omitempty"`
	DeadlineMs int64  `json:"deadlineMs"` // from now
}

// asked is ask for what may answer for a while after ctx is done.
func asked[R any](ctx context.Context, i *instance, method string, limit, linger time.Duration, g *grant, params func(*seat, until) any) (*R, error) {
	s := i.seated()
	if s == nil {
		var err error
		if s, err = i.enter(ctx); err != nil {
			return nil, err
		}
	}
	return put[R](ctx, s, method, limit, linger, g, params)
}

// put is one call to a process in which the session is open. It takes no longer than limit.
func put[R any](ctx context.Context, s *seat, method string, limit, linger time.Duration, g *grant, params func(*seat, until) any) (*R, error) {
	ctx, clock, cancel := limited(ctx, limit)
	defer cancel()
	u := until{DeadlineMs: limit.Milliseconds()}
	if g != nil && !g.empty() {
		g.clock, g.life, g.seat = clock, s.life, s
		defer s.life.grants.give(ctx, g)()
		u.Grant = g.id
	}
	raw, err := s.life.call(ctx, method, params(s, u), linger)
	if err != nil {
		return nil, err
	}
	answer := new(R)
	if err := strict(raw, answer); err != nil {
		return nil, s.life.fail(Protocol, fmt.Errorf("%s: the answer: %w", method, err))
	}
	return answer, nil
}
