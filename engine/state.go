package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"lashd/engine/queue"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Names of the state components that the engine itself keeps.
const (
	componentTools     = "tools"
	componentOverlay   = "overlay"
	componentApprovals = "approvals"
	componentProtocol  = "protocol"
)

// state is everything about a session that changes. It belongs to the session's actor.
type state struct {
	*session
	ctx              context.Context
	end              context.CancelCauseFunc // of ctx, when the state is given up
	closed           chan struct{}           // closed once this state takes no functions of its turn any more
	reloaded         bool                    // an earlier state of this handle was given up
	row              protocol.Session
	commits          int // made by this state
	branch           int64
	refuses          error // why it takes nothing any more; nil: it does
	broken           error // memory and store may differ: the actor loads the session again
	queue            *queue.Queue
	decisions        map[protocol.DecisionID]*openDecision
	approved         []standing // for this session, by a person
	overlay          overlay
	overlayReplaced  chan struct{} // closed once the overlay that is watched is another one; nil: it stays without its client
	storedTools      protocol.ToolState
	storedPlugins    *pluginState                      // as it is stored; nil: nothing is
	recorded         recorded                          // likewise
	tasks            map[protocol.TaskID]protocol.Task // not over
	transfers        map[protocol.TaskID]bool          // to another session
	failedHiddenTask *protocol.Task                    // the first one that failed since somebody waited for such; nil: none
	monitors         *monitors                         // as they are stored; nil: there are none
	updates          []protocol.MonitorUpdate          // of them, that nobody has taken yet; the newest
	monitorsCutOff   bool                              // some are to be begun again that another run of the daemon has begun
	rewinds          []persistence.StoredPoint         // that an earlier daemon, or an earlier state, has begun
	holder           *sessionHold                      // holds the session: no turn starts
	waitingHolders   []*sessionHold                    // want to
	history          *history
	plugins          *pluginSet
	newestPlugins    *pluginSet   // the newest there is, as the message that the actor serves has found; nil: it has not looked
	working          atomic.Int32 // tasks at which plugins work: they would be lost if the session left memory
	clientCalls      map[protocol.CallID]*clientCall
	current          *run
	frameTurn        protocol.TurnID // the turn that is started begins a frame; empty: it does not
	alarm            *time.Timer     // for what is due next: a decision, or a retry
	retry            time.Time       // when to try again what found no space; zero: nothing to try
	lastPublished    outline         // of this session, to those who watch the daemon
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
		session: s, ctx: ctx, end: end, closed: make(chan struct{}), reloaded: again, row: row.Session, branch: row.Branch,
		decisions: map[protocol.DecisionID]*openDecision{}, transfers: map[protocol.TaskID]bool{}, clientCalls: map[protocol.CallID]*clientCall{}, alarm: stoppedTimer(),
	}
	if err := st.loadOpen(row.Key); err != nil {
		return nil, err
	}
	st.ownMonitors()
	open, err := s.eng.store.OpenDecisions(ctx, row.Key)
	if err != nil {
		return nil, err
	}
	for _, d := range open {
		st.decisions[d.ID] = waitingDecision(d)
	}
	st.arm()
	st.watchOverlay()
	s.resume(st.queue.Begun())
	s.feed.Restart(row.Seq)
	if !again {
		s.eng.Trace.append(TraceSessionStarted, TraceRecord{SessionID: s.id}, st.traced())
	}
	return st, nil
}

// loadOpen reads what a session is in the middle of.
func (st *state) loadOpen(key int64) (err error) {
	turns, err := st.eng.store.OpenTurns(st.ctx, key)
	if err != nil {
		return err
	}
	inputs, err := st.eng.store.PendingInputs(st.ctx, key)
	if err != nil {
		return err
	}
	st.queue = queue.New(turns, inputs)
	if err := st.loadComponents(key); err != nil {
		return err
	}
	st.key = key
	if err := st.loadTasks(); err != nil {
		return err
	}
	st.rewinds, err = st.eng.store.OpenRewinds(st.ctx, key)
	return err
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (st *state) loadComponents(key int64) error {
	parts, err := st.eng.store.Components(st.ctx, key, "")
	if err != nil {
		return err
	}
	into := map[string]any{
		componentApprovals: &st.approved, componentOverlay: &st.overlay, componentTools: &st.storedTools, componentPlugins: &st.storedPlugins,
		componentProtocol: &st.recorded, componentMonitors: &st.monitors,
	}
	for name, value := range into {
		if body, ok := parts[name]; ok {
			if err := json.Unmarshal(body, value); err != nil {
				return fmt.Errorf("component %s: %w", name, err)
			}
		}
	}
	return nil
}

// unload gives the state up. Its turn stops where it can be resumed, and takes nothing of what comes later for its own.
func (st *state) unload() {
	st.end(st.leaving()) // first, so that nobody takes the end of the state for a failure of its own
	st.refuses = refusal(context.Cause(st.ctx))
	close(st.closed)
	if st.current != nil {
		st.await(st.current.ended, nil)
	}
	if st.turnMu.Lock(); st.turn != nil {
		st.interruptedLocked()
	}
	st.turn, st.session.doing = nil, ""
	st.turnMu.Unlock()
	st.alarm.Stop()
	st.awaitLeases()
	st.dropTools()
}

// awaitLeases waits until nobody works with the plugins any more, but not for ever.
func (st *state) awaitLeases() {
	if st.plugins == nil {
		return
	}
	limit := time.NewTimer(stopPatience)
	defer limit.Stop()
	if !st.await(st.plugins.lent.retire(), limit.C) {
		st.eng.Log.Error("plugins are still at work although their context is done", "session", st.id)
	}
}

// refusalDelay is how long who wants something of a state that is given up waits for the next one.
const refusalDelay = time.Second

// await waits for work that uses the state to end, or for the limit, and tells whether it has ended. That work may itself wait
// for an answer of the actor: if it takes longer than a moment, what comes in is refused.
func (st *state) await(ended <-chan struct{}, limit <-chan time.Time) bool {
	moment := time.NewTimer(refusalDelay)
	defer moment.Stop()
	var mail, urgent <-chan func(*state)
	for {
		select {
		case <-moment.C:
			mail, urgent = st.mail, st.urgent
		case f := <-mail:
			f(st)
		case f := <-urgent:
			f(st)
		case <-ended:
			return true
		case <-limit:
			return false
		}
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

// leaving is why the turn of a state that is given up is left.
func (st *state) leaving() error {
	if errors.Is(st.broken, persistence.ErrDeleted) {
		return errDeleted
	}
	return errStopped
}

// unused tells whether nothing would be lost if the session left memory.
func (st *state) unused() bool {
	return len(st.queue.Turns()) == 0 && len(st.clientCalls) == 0 && len(st.decisions) == 0 && st.guests == nil && !st.inUse() && st.working.Load() == 0 && !st.feed.Watched()
}

// public is the session as clients see it.
func (st *state) public() protocol.Session {
	s := st.row
	s.State = st.doing()
	return s
}

func (st *state) doing() protocol.SessionState {
	switch {
	case slices.ContainsFunc(st.openDecisions(), (*openDecision).person):
		return protocol.SessionRequiresAction
	case len(st.queue.Turns()) > 0, st.holder != nil:
		return protocol.SessionRunning
	}
	return protocol.SessionIdle
}

// arm sets the alarm to whatever is due first.
func (st *state) arm() {
	next := st.retry
	for _, d := range st.decisions {
		if !d.due.IsZero() && (next.IsZero() || d.due.Before(next)) {
			next = d.due
		}
	}
	if next.IsZero() {
		st.alarm.Stop()
		return
	}
	st.alarm.Reset(time.Until(next))
}

// later has what found no space tried again.
func (st *state) later() {
	st.retry = time.Now().Add(spaceCheck)
	st.arm()
}

// alarmed does what is due.
func (st *state) alarmed() {
	now := time.Now()
	if !st.retry.IsZero() && !st.retry.After(now) {
		st.retry = time.Time{}
	}
	for _, d := range st.decisions {
		if d.due.IsZero() || d.due.After(now) || st.broken != nil {
			continue
		}
		if err := st.expire(d); err != nil {
			st.eng.Log.Error("decision did not expire", "decision", d.ID, "error", err)
			d.due = now.Add(spaceCheck)
		}
	}
	st.arm()
	st.startNextTurn()
}
