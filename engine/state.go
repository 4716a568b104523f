package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"lashd/engine/approval"
	"lashd/engine/monitor"
	"lashd/engine/queue"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Names of the state components that the engine itself keeps.
const (
	componentTools    = "tools"
	componentOverlay  = "overlay"
	componentProtocol = "protocol"
)

// state is everything about a session that changes. It belongs to the session's actor.
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
	alarm      *alarm
	published  publisher
}

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
	st.alarm = newAlarm(st.decisions.Book)
	st.overlay.watch(st)
	s.resume(st.queue.Begun())
	s.feed.Restart(row.Seq)
	if !again {
		s.eng.Trace.Add(trace.SessionStarted, trace.Record{SessionID: s.id}, st.traced())
	}
	return st, nil
}

// loadOpen reads what a session is in the middle of.
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

// startOver reads components and history again after a snapshot was restored, and removes the plugins, which the holder of their lock closes.
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

// refusal is what those are told who want something of a state that was given up for a cause.
func refusal(cause error) error {
	switch {
	case errors.Is(cause, errDeleted):
		return persistence.ErrDeleted
	case errors.Is(cause, errStopped):
		return ErrReloaded
	}
	return ErrShuttingDown
}

// public is the session as clients see it.
func (st *state) public() protocol.Session {
	s := st.row
	s.State = st.currentState()
	return s
}

func (st *state) currentState() protocol.SessionState {
	switch {
	case st.decisions.AskPerson():
		return protocol.SessionRequiresAction
	case len(st.queue.Turns()) > 0, st.holds.held():
		return protocol.SessionRunning
	}
	return protocol.SessionIdle
}

// idle refuses a change that may not come in the middle of a turn or of a command.
func (st *state) idle() error {
	switch {
	case len(st.queue.Turns()) > 0:
		return &TurnActiveError{TurnID: st.queue.Turns()[0].ID}
	case st.holds.held():
		return ErrSessionInUse
	}
	return nil
}
