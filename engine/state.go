package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"lashd/engine/alarm"
	"lashd/engine/approval"
	"lashd/engine/audit"
	"lashd/engine/monitor"
	"lashd/engine/queue"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Components are the parts of a session's state that are stored under a name. The engine itself
// owns these; others belong to plugins, monitors and approvals.
const (
	componentTools    = "tools"
	componentOverlay  = "overlay"
	componentProtocol = "protocol"
)

// state is everything about a loaded session that changes. It belongs to the session's actor: only
// functions that the actor runs may use it, except for fields that say otherwise. Each part (queue,
// tasks, plugins, …) owns its own data and stores changes through state.change and state.commit.
//
// A session has one state at a time. When memory and store may differ (broken is set), the actor
// ends the state and loads a new one from the store, under the same handle and the same
// subscribers. Work that belongs to an ended state gets errors and ends.
type state struct {
	*session
	ctx        context.Context
	end        context.CancelCauseFunc // ends ctx, when the state is unloaded
	closed     chan struct{}           // closed once this state runs no more functions of its turn
	reloaded   bool                    // an earlier state of this handle was unloaded
	row        protocol.Session
	commits    int   // number of commits by this state; with the seq it identifies a point in time
	refusalErr error // set when the state is unloaded: the error for functions that still arrive
	broken     error // set when memory and store may differ, or to unload the session: the actor then ends this state
	queue      sessionQueue
	decisions  sessionDecisions
	overlay    sessionOverlay
	stored     *storedState
	tasks      sessionTasks
	monitors   sessionMonitors
	holds      sessionHolds
	history    sessionHistory
	plugins    *sessionPlugins
	turns      sessionTurns
	alarm      *alarm.Alarm
	published  publisher
	outside    audit.Programs
}

// load reads the session from the store into a new state. ctx is the context of all actors. again
// says that the handle had a state before: then subscribers stay and no start is traced. It changes
// nothing in the store and starts no work; wakeUp does.
func (s *session) load(ctx context.Context, again bool) (st *state, err error) {
	row, err := s.eng.store.Session(ctx, s.id)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			end(err)
		}
	}()
	st = &state{
		session: s, ctx: ctx, end: end, closed: make(chan struct{}), reloaded: again, row: row.Session,
		overlay: sessionOverlay{calls: map[protocol.CallID]*clientCall{}}, published: publisher{session: s},
	}
	st.plugins = newSessionPlugins(st)
	st.turns.st = st
	if err := st.loadOpen(row); err != nil {
		return nil, err
	}
	st.monitors.Own()
	st.newestRow.Store(&row.Session)
	st.steered.Store(st.queue.Steered())
	st.alarm = alarm.New(st.decisions.Book)
	st.overlay.watch(st)
	s.resume(st.queue.Begun())
	s.feed.Restart(row.Seq)
	if !again {
		s.eng.Trace.Add(trace.SessionStarted, trace.Record{SessionID: s.id}, st.traced())
	}
	return st, nil
}

// loadOpen reads the unfinished work of a session: turns, inputs, tasks, decisions and rewinds,
// then its components.
func (st *state) loadOpen(row persistence.Session) error {
	key := row.Key
	turns, err := st.eng.store.OpenTurns(st.ctx, key)
	if err != nil {
		return err
	}
	inputs, err := st.eng.store.PendingInputs(st.ctx, key)
	if err != nil {
		return err
	}
	st.queue = sessionQueue{queue.New(turns, inputs), st}
	st.key, st.stored = key, &storedState{store: st.eng.store, key: key}
	if err := st.loadTasks(); err != nil {
		return err
	}
	if err := st.loadComponents(key); err != nil {
		return err
	}
	if err := st.decisions.load(st); err != nil {
		return err
	}
	return st.history.load(st, row.Branch)
}

// loadComponents decodes the stored components into the parts that own them. Missing components
// keep their zero values.
func (st *state) loadComponents(key int64) error {
	parts, err := st.eng.store.Components(st.ctx, key, "")
	if err != nil {
		return err
	}
	into := st.stored.components()
	maps.Copy(into, map[string]any{approval.Component: &st.decisions.standing, componentOverlay: st.overlay.component(), monitor.Component: st.monitors.Book})
	for name, value := range into {
		if body, ok := parts[name]; ok {
			if err := json.Unmarshal(body, value); err != nil {
				return fmt.Errorf("component %s: %w", name, err)
			}
		}
	}
	return nil
}

// reloadRestored reads components and history again after a snapshot was restored. It removes the
// open plugins from the session; the holder of their lock closes them. On an error the session is
// loaded again.
func (st *state) reloadRestored() {
	st.plugins.remove()
	st.stored.forget()
	st.monitors.Forget()
	err := st.history.reload(st.ctx)
	if err == nil {
		err = st.loadComponents(st.key)
	}
	if err != nil {
		st.broken = err // load the session again
	}
}

// refusal returns the error that callers get from a state that ended for a cause: the session was
// deleted, was loaded again, or the daemon stops.
func refusal(cause error) error {
	switch {
	case errors.Is(cause, errDeleted):
		return persistence.ErrDeleted
	case errors.Is(cause, errStopped):
		return ErrReloaded
	}
	return ErrShuttingDown
}

// public returns the session as clients see it.
func (st *state) public() protocol.Session {
	s := st.row
	s.State = st.currentState()
	return s
}

// currentState returns what the session does. A question to a person takes precedence over running.
func (st *state) currentState() protocol.SessionState {
	switch {
	case st.decisions.AskPerson():
		return protocol.SessionRequiresAction
	case len(st.queue.Turns()) > 0, st.holds.held():
		return protocol.SessionRunning
	}
	return protocol.SessionIdle
}

// idle fails if a turn is running or queued, or a command holds the session: some changes must not
// happen in the middle of either.
func (st *state) idle() error {
	switch {
	case len(st.queue.Turns()) > 0:
		return &TurnActiveError{TurnID: st.queue.Turns()[0].ID}
	case st.holds.held():
		return ErrSessionInUse
	}
	return nil
}
