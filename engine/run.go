package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lashd/engine/change"
	"lashd/engine/feed"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// run is a running turn: a goroutine that performs the effects of its machine. What it pinned at its start does not
// change: configuration, plugins, and the history before it. Its goroutine and the actor never work on it at the same
// time, as the goroutine waits whenever the actor stores something for it; what others may look at meanwhile is guarded.
type run struct {
	*session
	owner      *state // nil: this is a tool that is called directly
	keyed      bool   // likewise: it is journaled
	id         protocol.TurnID
	begin      beginning
	cwd        string
	ceiling    *protocol.Ceiling     // of those whose inputs the turn has taken in; nil: none. Changed only where its goroutine waits
	forPlugins protocol.PluginInputs // what the turn brings them
	about      protocol.Session      // as it was when the turn began, or went on after a restart
	started    time.Time
	startedMs  int64
	acceptedMs int64
	resumed    bool                    // an earlier run of the daemon began it
	life       context.Context         // until the turn is left or over
	ctx        context.Context         // until it is cancelled, too
	halt       context.CancelCauseFunc // leaves the turn as it is
	cancel     context.CancelCauseFunc // has it end as cancelled
	ended      chan struct{}           // closed when its goroutine has returned
	entering   bool                    // it begins a frame, and who has to be told of that is not told yet
	entered    chan struct{}           // closed then
	next       *run                    // goes on where this one has ended, in another frame

	input    []protocol.Message // what the turn begins with
	past     []*protocol.Message
	extra    *turnContext  // what plugins made of the past for this turn; nil: nothing
	ahead    chan composed // for the first iteration; nil: it is not composed ahead, or taken
	lease    *lease        // of the plugins, until everybody is told of the turn
	plugins  *plugin.Session
	model    provider.Provider // nil: not configured any more
	machine  *turn.Machine
	catalog  *tool.Catalog
	base     *tool.Registry // the tools of the plugins, whatever a client puts in their place
	prints   fingerprints
	size     turnSize
	journal  journal
	asked    map[asking]protocol.Decision  // of an earlier run, about calls
	lost     bool                          // the next model call may repeat one whose reply was lost
	logged   progress                      // written by the actor only
	emits    []protocol.PluginNode         // what the driver told observers
	streamed []*feed.Item                  // items of model output that are not in the log yet
	owed     []*protocol.TriggerEmitParams // what calls tell of, and is not emitted yet
	batch    []*stage                      // of the tool effect that is being performed
	held     []protocol.Message            // of plugins, from tool seams, for the next checkpoint
	given    *givenUp                      // why nothing of the turn becomes history
	issues   []protocol.Issue              // that are not the machine's
	captured *captured                     // what plugins keep, for the commit
	after    []change.Event                // to be told once the turn is committed
	told     *protocol.TurnReport          // that is stored
	legible  projection                    // of the answer
	full     bool                          // history is to be compacted before the next turn
	files    *turnFiles                    // what tools do to files; nil: none was at work yet

	mu    sync.Mutex
	nodes []protocol.Node // of the machine's messages; guarded where the goroutine does not wait
}

// givenUp replaces what a turn came to.
type givenUp struct{ issue protocol.Issue }

// cancelled is the cause of a turn's context when somebody wants it to stop.
type cancelled struct{ evidence protocol.CancelEvidence }

func (c *cancelled) Error() string {
	if c.evidence.Reason == "" {
		return "turn cancelled"
	}
	return "turn cancelled: " + c.evidence.Reason
}

// do performs effects until the turn is done, then commits it, and tells whether it is stored.
func (r *run) do(ctx context.Context) (stored bool) {
	r.feed.Show(protocol.Event{Type: protocol.EventTurnStarted, TurnID: r.id})
	r.trace(TraceTurnStarted, tracedTurn{Resumed: r.resumed, Inputs: r.begin.Inputs})
	defer r.retract() // what was shown and is not stored will be made again
	if r.enter() != nil || r.transform(ctx) != nil || r.beforeTurn(ctx) != nil {
		return false // a later run begins it anew
	}
	r.pay()
	r.resumeFiles(ctx)
	for {
		effect, ok := r.machine.Next()
		if !ok {
			break
		}
		err := r.step(ctx, effect)
		if err != nil && r.left() {
			return false // a later run goes on from the journal
		}
		if err != nil {
			r.eng.Log.Error("turn failed", "session", r.session.id, "turn", r.id, "error", err)
			r.fail(effect, err)
		}
	}
	r.project()
	if r.afterTurn() != nil || !r.finish() {
		return false
	}
	if r.next != nil {
		<-r.next.entered // plugins are told of what was stored when the protocol has its new frame
	}
	r.afterCommit()
	return true
}

// left tells that the work on the turn ends, but not the turn: the daemon stops, or the session's state was given up. No error
// tells that, as plugins have errors of their own.
func (r *run) left() bool { return r.life.Err() != nil }

// drive does the turn. One that neither ended nor was left is what the store knows of it: the session is loaded again.
func (r *run) drive() {
	stored, err := r.tried()
	if stored || r.left() {
		return
	}
	// An error means that the state is given up already.
	_, _ = ask(r, func(_ context.Context, st *state) (struct{}, error) {
		st.broken = cmp.Or(st.broken, err)
		return struct{}{}, nil
	})
}

// tried is do. A panic of ours breaks the session's state, not the daemon.
func (r *run) tried() (stored bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.eng.panicked("turn", r.id, p)
		}
	}()
	return r.do(r.ctx), errUnfinished
}

// errUnfinished means that a turn was not brought to its end, though nothing kept it from it.
var errUnfinished = errors.New("a turn has not ended")

// fail ends the turn with an error. The results that calls of a batch have are kept.
func (r *run) fail(effect turn.Effect, err error) {
	issue := protocol.Issue{Kind: "runtime", Code: codeOf(err, "runtime_error"), Message: err.Error()}
	defer func() {
		if p := recover(); p != nil { // of the driver, when it is told of the results
			r.eng.panicked("turn", r.id, p)
			r.machine.Fail(protocol.OutcomeRuntimeError, issue)
			r.noteNodes()
		}
	}()
	if effect.Kind == turn.EffectTools && len(r.batch) > 0 {
		for _, s := range r.batch {
			switch {
			case s.reply != nil:
			case s.began || s.attempt > 0:
				s.unfinished()
			default:
				s.answer(protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn failed before the call was made"})
			}
		}
		r.machine.Deliver(effect.ID, turn.Response{Tools: replies(r.batch)})
	}
	r.machine.Fail(protocol.OutcomeRuntimeError, issue)
	r.noteNodes()
}

// codeOf is the stable word for an error of ours.
func codeOf(err error, otherwise string) string {
	switch {
	case errors.As(err, new(*JournalError)):
		return "journal_mismatch"
	case errors.As(err, new(*OverdueError)):
		return "completion_timeout"
	case errors.As(err, new(*FullTurnError)):
		return "turn_full"
	case errors.Is(err, persistence.ErrBudget):
		return "commit_budget"
	case errors.Is(err, errPanic), errors.As(err, new(*plugin.PanicError)):
		return "panic"
	}
	return otherwise
}

// step performs one effect. A panic of ours fails the turn, not the daemon.
func (r *run) step(ctx context.Context, effect turn.Effect) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.eng.panicked("turn", r.id, p)
		}
	}()
	if !effect.Waits() {
		r.noteEmit(effect)
		return nil
	}
	r.trace(TraceEffectStarted, tracedEffect{ID: effect.ID, Kind: effect.Kind})
	defer func() {
		if err == nil {
			r.trace(TraceEffectSettled, tracedEffect{ID: effect.ID, Kind: effect.Kind})
		}
	}()
	if effect.Kind == turn.EffectTools {
		r.lost = false                 // so no model call was under way when the daemon ended
		return r.runTools(ctx, effect) // it sees to the results of its calls when it is interrupted
	}
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause)
	}
	switch effect.Kind {
	case turn.EffectSync:
		return r.sync(ctx, effect)
	case turn.EffectModel:
		return r.callModel(ctx, effect)
	case turn.EffectCheckpoint:
		return r.checkpoint(ctx, effect)
	case turn.EffectCode:
		return r.runCell(ctx, effect)
	}
	return fmt.Errorf("no executor for %s effects", effect.Kind)
}

// deliver gives an answer to the machine and notes it for the journal, which the next commit of the turn writes.
func (r *run) deliver(effect turn.Effect, answer turn.Response) {
	r.note(effect, answer)
	r.machine.Deliver(effect.ID, answer)
	r.noteNodes()
	r.trace(TraceProtocolStep, tracedStep{Effect: effect.Kind, Messages: len(r.nodes), Finished: r.machine.Finished()})
}

// stop ends the turn because its context did: for good if it was cancelled, to be resumed if not.
func (r *run) stop(cause error) error {
	c, ok := errors.AsType[*cancelled](cause)
	if !ok {
		return cause
	}
	r.dropPrefetch(r.ctx)
	r.machine.Cancel(c.evidence, nil)
	r.noteNodes()
	return nil
}

// sync gives the iteration its prompt and tools. They are fixed for the iteration; between iterations the tools may
// change, while the configuration stays the one that the turn began with.
func (r *run) sync(ctx context.Context, effect turn.Effect) error {
	if effect.Sync.Recompute {
		if err := r.transform(ctx); err != nil || r.machine.Finished() {
			return err
		}
	}
	env, err := r.environment(ctx)
	if failed, ok := errors.AsType[*hookFailure](err); ok {
		return r.failPrompt(ctx, failed)
	}
	if err != nil {
		return err
	}
	r.deliver(effect, env)
	return nil
}
