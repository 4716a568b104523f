package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/trace"
	"lashd/engine/turn"
	"lashd/engine/undo"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// run is a running turn: one goroutine that performs the effects of the turn's machine and feeds
// the answers back. It pins its configuration, plugins and history at the start; changes of the
// session apply to the next turn.
//
// The goroutine (drive) and the session's actor share the run without locks: they never use it at
// the same time, because the goroutine waits whenever the actor stores something for it. Parts that
// others may read at any time, such as the nodes of the journal, have locks of their own. A run
// ends in one of three ways: its turn is stored, it is suspended because the daemon stops or the
// state is reloaded (a later run resumes from the journal), or it could not be prepared and is
// abandoned.
type run struct {
	*session
	owner       *state // the state that started the turn
	id          protocol.TurnID
	life        context.Context         // until the turn ends or is suspended
	ctx         context.Context         // as life, and also ends when the turn is cancelled
	halt        context.CancelCauseFunc // suspends the turn; a later run resumes it
	cancel      context.CancelCauseFunc // ends the turn as cancelled
	ended       chan struct{}           // closed when its goroutine has returned
	entering    bool                    // the turn opens a frame, and its plugins do not know yet
	frameStored chan struct{}           // closed once they do, or if the turn is not prepared
	next        *run                    // the turn that continues this one in another frame

	lease          *lease            // keeps the plugins open until the hooks after the turn returned
	model          provider.Provider // nil: no longer configured
	journal        journal
	judge          judge
	result         turnResult
	store          *turnStore
	trace          turnTrace
	asks           asks
	hooks          *hooks
	seams          *seams
	prompt         *prompt
	mayRepeatReply bool // the daemon may have stopped during a model call: the next call may repeat it
	emissions      emissions
	batch          *batch      // of the tool effect in progress; nil: none
	files          *undo.Point // records changes of files; nil: undo is off for the session
}

// cancelled is the cause of a turn's context when a client, plugin or parent interrupts the turn.
// The evidence says who did and becomes part of the outcome.
type cancelled struct{ evidence protocol.CancelEvidence }

func (c *cancelled) Error() string {
	if c.evidence.Reason == "" {
		return "turn cancelled"
	}
	return "turn cancelled: " + c.evidence.Reason
}

// do performs effects until the machine is finished, then commits the turn. It reports whether the
// turn is stored; if not, a later run resumes it. Items that were shown but not stored are
// withdrawn on return.
func (r *run) do(ctx context.Context) (stored bool) {
	r.feed.Show(protocol.Event{Type: protocol.EventTurnStarted, TurnID: r.id})
	r.trace.add(trace.TurnStarted, trace.Turn{Resumed: r.result.resumed, Inputs: r.journal.begin.Inputs})
	defer r.store.retract() // a later run makes again what was shown but not stored
	if r.enterFrame() != nil || r.prompt.transform(ctx) != nil || r.seams.beforeTurn(ctx) != nil {
		return false // a later run prepares the turn again
	}
	r.emissions.send()
	if r.result.resumed {
		r.files.Resume(ctx)
	}
	for {
		effect, ok := r.journal.next()
		if !ok {
			break
		}
		err := r.step(ctx, effect)
		if err != nil && r.store.suspended() {
			return false // a later run resumes from the journal
		}
		if err != nil {
			r.eng.Log.Error("turn failed", "session", r.session.id, "turn", r.id, "error", err)
			r.fail(effect, err)
		}
	}
	r.seams.project()
	if r.seams.afterTurn(r.prompt.contextTokens) != nil || !r.finish() {
		return false
	}
	if r.next != nil {
		<-r.next.frameStored // hooks after the commit run once the new frame is open
	}
	r.seams.afterCommit()
	return true
}

// drive prepares the turn and runs it. It is the turn's goroutine. A turn that cannot be prepared
// is abandoned. If the run fails without a stored end and was not suspended, the state is marked
// broken: the session is loaded again and the next run starts from what the store knows. It closes
// r.ended last.
func (r *run) drive() {
	defer close(r.ended)
	defer r.discard()
	defer r.eng.tidyFiles()
	defer r.files.Release()
	if err := r.prepare(); err != nil {
		close(r.frameStored)
		if !r.store.suspended() {
			// An error means that the state was unloaded: the next state tries again.
			_, _ = onTurnState(r.store, func(_ context.Context, st *state) (struct{}, error) {
				st.turns.abandonRun(r, err)
				return struct{}{}, nil
			})
			r.session.resumed()
		}
		return
	}
	r.session.resumed()
	stored, err := r.doRecovered()
	if stored || r.store.suspended() {
		return
	}
	// An error means that the state was unloaded already.
	_, _ = onTurnState(r.store, func(_ context.Context, st *state) (struct{}, error) {
		st.broken = cmp.Or(st.broken, err)
		return struct{}{}, nil
	})
}

// doRecovered is do with a recover: a panic breaks the session's state, not the daemon. Without a
// panic the error is errUnfinished, which the caller uses only if the turn is not stored.
func (r *run) doRecovered() (stored bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.eng.group.Recovered("turn", r.id, p)
		}
	}()
	return r.do(r.ctx), errUnfinished
}

// errUnfinished means that a turn stopped without an end in the store, although it was neither suspended nor panicked.
var errUnfinished = errors.New("a turn stopped before its end was stored")

// fail ends the turn with a runtime error. If a batch of tool calls was in progress, it delivers
// the results that the batch has and marks the other calls as failed, so that history has a result
// for each call.
func (r *run) fail(effect turn.Effect, err error) {
	issue := protocol.Issue{Kind: "runtime", Code: codeOf(err, "runtime_error"), Message: err.Error()}
	defer func() {
		if p := recover(); p != nil { // the driver panicked over the results
			r.eng.group.Recovered("turn", r.id, p)
			r.journal.fail(protocol.OutcomeRuntimeError, issue)
		}
	}()
	if effect.Kind == turn.EffectTools && r.batch != nil {
		r.batch.failRest()
		r.journal.deliver(effect.ID, turn.Response{Tools: replies(r.batch.calls)})
	}
	r.journal.fail(protocol.OutcomeRuntimeError, issue)
}

// codeOf returns the stable issue code for an error, or otherwise if the error has none of its own.
func codeOf(err error, otherwise string) string {
	switch {
	case errors.As(err, new(*JournalError)):
		return "journal_mismatch"
	case errors.As(err, new(*OverdueError)):
		return "completion_timeout"
	case errors.As(err, new(*LanguageChangedError)):
		return "code_language_changed"
	case errors.As(err, new(*FullTurnError)):
		return "turn_full"
	case errors.Is(err, persistence.ErrBudget):
		return "commit_budget"
	case errors.Is(err, workgroup.ErrPanic), errors.As(err, new(*plugin.PanicError)):
		return "panic"
	}
	return otherwise
}

// step performs one effect that the machine asks for. A panic becomes an error, which fails the
// turn. Emits and logs need no answer. All other effects end in deliver, unless the turn's context
// is done.
func (r *run) step(ctx context.Context, effect turn.Effect) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.eng.group.Recovered("turn", r.id, p)
		}
	}()
	if !effect.Waits() {
		r.noteEmit(effect)
		return nil
	}
	r.trace.add(trace.EffectStarted, trace.Effect{ID: effect.ID, Kind: effect.Kind})
	defer func() {
		if err == nil {
			r.trace.add(trace.EffectSettled, trace.Effect{ID: effect.ID, Kind: effect.Kind})
		}
	}()
	if effect.Kind == turn.EffectTools {
		r.mayRepeatReply = false       // the daemon stopped after the model call, not during it
		return r.runTools(ctx, effect) // it handles cancellation itself, as each call needs a result
	}
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause)
	}
	if err := r.prompt.checkLanguage(ctx, effect); err != nil {
		return err
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

// noteEmit handles effects without an answer: it keeps emits for the next commit and writes logs to
// the trace.
func (r *run) noteEmit(effect turn.Effect) {
	switch effect.Kind {
	case turn.EffectEmit:
		r.journal.emits = append(r.journal.emits, *effect.Emit)
		r.trace.add(trace.Custom, effect.Emit)
	case turn.EffectLog:
		r.trace.add(trace.Issue, effect.Log)
	}
}

// deliver gives an answer to the machine and notes it in the journal. The next commit of the turn
// writes it.
func (r *run) deliver(effect turn.Effect, answer turn.Response) {
	r.journal.note(effect, answer)
	r.journal.deliver(effect.ID, answer)
	r.trace.add(trace.ProtocolStep, trace.Step{Effect: effect.Kind, Messages: len(r.journal.nodes), Finished: r.journal.finished()})
}

// stop handles a context that is done. If the turn was cancelled, it ends the turn and returns nil.
// Otherwise it returns the cause, and the turn is suspended.
func (r *run) stop(cause error) error {
	c, ok := errors.AsType[*cancelled](cause)
	if !ok {
		return cause
	}
	r.journal.cancel(c.evidence)
	return nil
}

// sync answers a sync effect with the prompt and tools of the next iteration. They stay fixed for
// the iteration. Tools may change between iterations; the configuration is the one that the turn
// began with.
func (r *run) sync(ctx context.Context, effect turn.Effect) error {
	if effect.Sync.Recompute {
		if err := r.prompt.transform(ctx); err != nil || r.journal.finished() {
			return err
		}
	}
	env, err := r.prompt.environment(ctx)
	if failed, ok := errors.AsType[*hookFailure](err); ok {
		return r.failPrompt(ctx, failed)
	}
	if err != nil {
		return err
	}
	r.deliver(effect, env)
	return nil
}
