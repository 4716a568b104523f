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

// instance is the plugin in one session. It implements plugin.Plugin. The session may outlive
// several processes: each new process gets the session and the saved state on first use.
//
// place, kept and revision belong together. place is where the session is open now. kept is the
// state that the next process starts with. revision is the version of the current state, which may
// be newer than kept. If the process ends, the changes after kept are lost and revision returns to
// that of kept. mu protects the fields below it; it is never held during a call to the process.
type instance struct {
	factory *Factory
	build   plugin.BuildContext
	also    plugin.Spec                 // what the plugin contributes besides its process; nil: nothing
	list    atomic.Pointer[[]tool.Tool] // tools that the plugin listed at run time; nil: the declared ones

	mu       sync.Mutex
	place    *seat             // the instance in the current process; nil: the process does not know the session
	kept     *saved            // state for the next process; nil: none
	code     map[string][]byte // values of the code executor for the next process, by name; nil: none
	dirty    bool              // a cell has run since code was stored
	revision uint64            // of the state; a revision is never reused for other state
	newest   uint64            // the highest revision so far
	omission *omission         // last answer of the catalog hook; nil: none
	closed   bool
}

// seat is an instance in one process. It is created when the session is opened there. ready is
// closed when the process has answered; err is valid after that.
type seat struct {
	of    *instance
	id    string // the process's ID for the instance
	life  *life
	ready chan struct{} // closed when the session is open, or opening failed
	err   error         // valid once ready is closed
	open  bool

	tools    []protocol.ToolManifest // of the last code cell, which the process keeps; nil: it has none. Guarded by of.mu
	said     uint64                  // the last revision that the plugin reported
	fetching bool                    // a goroutine is fetching the list of tools
	again    bool                    // the list changed during that
}

// newInstance returns an instance that no process knows yet.
func newInstance(f *Factory, ctx plugin.BuildContext) *instance {
	return &instance{factory: f, build: ctx}
}

// open holds the parameters of session/open.
type open struct {
	Instance string                       `json:"instance"` // used in all messages about the instance; a session has two while a restore is tried
	Session  protocol.SessionID           `json:"sessionId,omitempty"`
	Parent   protocol.SessionID           `json:"parentSessionId,omitempty"`
	Access   protocol.Authority           `json:"toolAccess"`
	Subagent *protocol.Subagent           `json:"subagent,omitempty"`
	Cwd      string                       `json:"cwd"`
	Options  json.RawMessage              `json:"options,omitempty"`
	Shared   map[string][]json.RawMessage `json:"extensions,omitempty"`
}

// enter returns the instance's seat in a running process, starting the process and opening the
// session as needed. It has its own time limit, Deadlines.Start, which does not count as time of
// the call. Callers that wait for the same seat share the work.
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

// seated returns the seat if the session is open in a running process, otherwise nil. It never
// waits.
func (i *instance) seated() *seat {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.place; s != nil && s.open && s.life.alive() {
		return s
	}
	return nil
}

// sit returns the instance's seat in a process. If it has none, sit starts to open the session
// there. The seat may not be ready yet.
func (i *instance) sit(ctx context.Context, l *life) (*seat, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, l.fail(Stopped, fmt.Errorf("session %s is closed", i.build.SessionID))
	}
	if !l.alive() { // the session may already be open in the next process
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

// begin opens the session in a process and sends the saved state, within Deadlines.State. It runs
// on its own goroutine, so a slow plugin does not block callers that give up. Secrets in the
// session's options are hidden from the plugin's log first.
func (i *instance) begin(ctx context.Context, s *seat, kept *saved, code map[string][]byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, i.factory.config.Deadlines.State, child.ErrLate)
	defer cancel()
	b := i.build
	i.factory.config.Output.Hide(child.SecretsInJSON(b.Options)...)
	_, err := s.life.call(ctx, "session/open", open{
		s.id, b.SessionID, b.Parent, b.Authority, b.Authority.Subagent, b.Cwd, b.Options, b.Extensions,
	}, 0, func() {})
	if err == nil && kept != nil {
		err = i.giveBack(ctx, s, kept)
	}
	if err == nil && code != nil {
		err = i.giveCode(ctx, s, code)
	}
	return err
}

// opened finishes opening a session. After a failure, the next use tries again.
func (i *instance) opened(s *seat, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s.err, s.open = err, err == nil
	if err != nil && i.place == s {
		i.leaveLocked()
	}
	close(s.ready)
}

// leaveLocked closes the session in its process.
func (i *instance) leaveLocked() {
	if i.place == nil {
		return
	}
	i.factory.unseat(i.place.id)
	i.place.life.tell("session/close", i.of(i.place))
	i.place = nil
}

// lost detaches the instance from a process that has ended.
func (i *instance) lost(l *life) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.place != nil && i.place.life == l {
		i.lostLocked()
	}
}

// lostLocked returns to the last saved state, because later changes ended with the process.
func (i *instance) lostLocked() {
	if i.place == nil {
		return
	}
	if was := i.kept.at(); i.revision != was {
		i.factory.config.Log.Warn("the plugin's process ended with unsaved state; the session continues with the last saved state", "session", i.build.SessionID)
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

// of is the start of every message about an instance.
type of struct {
	Instance string             `json:"instance"`
	Session  protocol.SessionID `json:"sessionId,omitempty"`
}

// of returns the start of a message to the process of s.
func (i *instance) of(s *seat) of { return of{s.id, i.build.SessionID} }

// ask calls the process for the session, within limit. g is what the call may ask of lashd; nil:
// nothing. params builds the parameters. An answer that does not decode is an Error with code
// Protocol.
func ask[R any](ctx context.Context, i *instance, method string, limit time.Duration, g *grant, params func(*seat, until) any) (*R, error) {
	return asked[R](ctx, i, method, limit, 0, g, params)
}

// until is the part of a call about its rights and its time.
type until struct {
	Grant      string `json:"grant,omitempty"`
	DeadlineMs int64  `json:"deadlineMs"` // milliseconds from now
}

// asked is ask with linger: how long the process may still answer after ctx has ended.
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

// put calls a process in which the session is open.
func put[R any](ctx context.Context, s *seat, method string, limit, linger time.Duration, g *grant, params func(*seat, until) any) (*R, error) {
	ctx, clock, cancel := limited(ctx, limit)
	defer cancel()
	u, told := until{DeadlineMs: limit.Milliseconds()}, func() {}
	if g != nil && !g.empty() {
		g.clock, g.life, g.seat, g.told = clock, s.life, s, make(chan struct{})
		told = sync.OnceFunc(func() { close(g.told) })
		defer told()
		defer s.life.grants.give(ctx, g)()
		u.Grant = g.id
	}
	changes := s.life.box.Watch()
	raw, err := s.life.call(ctx, method, params(s, u), linger, told)
	s.life.report(method, changes(), g)
	if err != nil {
		return nil, err
	}
	answer := new(R)
	if err := strict(raw, answer); err != nil {
		return nil, s.life.fail(Protocol, fmt.Errorf("%s: the answer: %w", method, err))
	}
	return answer, nil
}
