package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"lashd/engine/authority"
	"lashd/engine/fact"
	"lashd/engine/plugin"
	"lashd/engine/queue"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// turnStart describes a turn that is about to start.
type turnStart struct {
	turn     persistence.StoredTurn
	resumed  bool   // an earlier run of the daemon started it: read its journal
	newFrame bool   // it is the first turn of a frame that the previous commit opened
	lease    *lease // taken over by the turn; nil: the turn's goroutine gets one
}

// start starts the goroutine of a turn that is already stored as running. A turn that cannot be prepared ends with
// that error as its outcome. start returns an error only if this could not be stored either. It runs on the actor.
func (ts *sessionTurns) start(s turnStart) error {
	r := newRun(ts.st, s, ts.beginning(s.turn.ID))
	var err error
	if s.resumed {
		err = r.recall(ts.st.ctx)
	}
	if err == nil && s.lease != nil {
		err = ts.provide(r)
	}
	if err != nil {
		r.discard()
		return ts.abandon(s.turn, err)
	}
	if s.turn.Cancel != nil {
		r.cancel(&cancelled{*s.turn.Cancel})
	}
	ts.launch(r)
	return nil
}

// startStored is start for callers that have committed and cannot fail any more. If it fails, the session tries
// again later. It returns the turn that runs now; nil: none.
func (ts *sessionTurns) startStored(s turnStart) *run {
	if err := ts.start(s); err != nil {
		ts.st.alarm.RetryAfter(spaceCheck)
	}
	return ts.current
}

// newRun builds the run of a turn and connects its parts. It runs on the actor and copies what the turn needs from
// the session; it starts nothing. discard releases it if it never starts.
func newRun(st *state, s turnStart, begin beginning) *run {
	turn := s.turn
	r := &run{
		session: st.session, owner: st, id: turn.ID, lease: s.lease, ended: make(chan struct{}),
		journal: journal{session: st.id, turn: turn.ID, begin: begin}, files: st.eng.Files.NewPoint(st.id, st.key, turn.ID, st.row.Cwd),
		entering: s.newFrame, frameStored: make(chan struct{}),
	}
	r.result = turnResult{journal: &r.journal, started: time.Now(), startedMs: turn.StartedMs, acceptedMs: turn.AcceptedMs, resumed: s.resumed}
	r.life, r.halt = context.WithCancelCause(st.ctx)
	r.ctx, r.cancel = context.WithCancelCause(r.life)
	r.judge = judge{config: &r.journal.begin.Config, cwd: st.row.Cwd, sessionCeiling: st.row.Authority.Ceiling, rules: st.eng.rules}
	r.trace = turnTrace{out: st.eng.Trace, session: st.id, turn: turn.ID, journal: &r.journal}
	r.store = &turnStore{session: st.session, owner: st, turn: turn.ID, life: r.life, halt: r.halt, journal: &r.journal, files: r.files, trace: r.trace}
	r.asks = asks{turnStore: r.store, judge: &r.judge}
	r.hooks = &hooks{session: st.session, caller: r, judge: &r.judge, trace: r.trace}
	r.seams = &seams{hooks: r.hooks, store: r.store, journal: &r.journal, result: &r.result, sessionAtStart: st.row}
	r.prompt = &prompt{seams: r.seams}
	r.emissions = emissions{eng: st.eng, turn: turn.ID, cwd: st.row.Cwd, life: r.life}
	return r
}

// discard releases the contexts and the lease of a run that has ended or never started.
func (r *run) discard() {
	r.halt(nil)
	r.lease.release()
}

// launch makes a run the current one and starts its goroutine, unless the engine is stopping.
func (ts *sessionTurns) launch(r *run) {
	ts.current = r
	ts.st.show(ts.st) // before the turn runs, so that whoever stops all turns finds it
	if !ts.st.eng.group.GoTurn(r.drive) {
		ts.current = nil
		r.discard()
	}
}

// beginning returns what a turn that starts now is based on. A resumed turn replaces it with the stored one.
func (ts *sessionTurns) beginning(id protocol.TurnID) beginning {
	head, at := ts.st.row.Head, ts.st.history.leaf()
	return beginning{
		Config: ts.st.row.Config, Leaf: head.Leaf, Branch: at.Branch, Generation: at.Generation, Frame: head.Frame,
		Inputs: ts.st.queue.BeginsWith(id),
	}
}

// provide gives a turn that has plugins the session's row, history, options and inputs, and starts armed monitors.
// It runs on the actor: in start if the turn came with a lease, else when the turn's goroutine asks for it.
func (ts *sessionTurns) provide(r *run) error {
	begin := r.beginning()
	var past []*protocol.Message
	var err error
	if begin.Leaf == ts.st.row.Head.Leaf {
		past, err = ts.st.history.messages()
	} else {
		past, err = ts.st.history.messagesAt(persistence.Cursor{Branch: begin.Branch, Generation: begin.Generation})
	}
	if err == nil {
		err = r.begin(ts.st.row, past, ts.st.stored.optionsOf(begin.Frame), ts.st.queue.Inputs())
	}
	if err != nil {
		return err
	}
	r.prompt.language, _ = fact.CodeLanguage.Of(&ts.st.stored.facts)
	if err := ts.st.monitors.startArmed(ts.st.ctx, true); err != nil {
		ts.st.eng.Log.Error("armed monitors did not start; the next turn tries again", "session", ts.st.id, "error", err)
	}
	return nil
}

// beginning returns what the turn started from, in this run of the daemon or an earlier one.
func (r *run) beginning() beginning { return r.journal.begin }

// begin stores in the run what it needs of the session and of its lease. It runs on the actor while the turn's
// goroutine waits or has not started. The actor may use the run afterwards. It fails if the options of the inputs
// cannot be merged with those of the frame.
func (r *run) begin(about protocol.Session, past []*protocol.Message, options *protocol.TurnOptions, inputs []protocol.QueuedInput) (err error) {
	begin := &r.journal.begin
	if !r.journal.begun {
		own := queue.ForTurn(inputs, begin.Inputs)
		if begin.TurnOptions, err = plugin.MergeTurnOptions(options, own.Options); err != nil {
			return err
		}
		begin.Config.Model, begin.Schema, begin.Config.Budget = begin.Config.Model.WithEffort(own.Effort), own.Schema, begin.Config.Budget.Within(own.Iterations)
	}
	r.model = r.eng.Models.Configured(begin.Config.Model).Provider
	r.prompt.set, r.prompt.catalog = r.lease.set, r.lease.catalog
	r.hooks.plugins, r.judge.plugins, r.judge.base = r.lease.plugins, r.lease.plugins, r.lease.set.composer.Base()
	r.judge.ceiling = r.judge.ceilingOf(r.id, inputs)
	r.seams.sessionAtStart, r.seams.past = about, past
	r.seams.input, r.seams.inputs = r.inputMessages(inputs), queue.PluginInputs(inputs, begin.Inputs)
	return nil
}

// prepare builds the turn's machine and replays the journal. It gets a lease if the turn has none, which may open
// plugins. With beforeTurn hooks the machine is built later, from their result. A panic becomes an error of the
// turn. It runs on the turn's goroutine.
func (r *run) prepare() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.eng.group.Recovered("turn", r.id, p)
		}
	}()
	if r.lease == nil {
		if r.lease, err = r.owner.plugins.lend(r.life, &r.journal.begin.Config); err != nil {
			return err
		}
		if _, err := onTurnState(r.store, func(_ context.Context, st *state) (struct{}, error) { return struct{}{}, st.turns.provide(r) }); err != nil {
			return err
		}
	}
	if r.hooks.plugins.HasBeforeTurn() && !r.journal.begun {
		return nil // beforeTurn builds the machine
	}
	r.seams.start()
	return r.replayJournal()
}

// ceilingOf returns the limits of a turn: those of all senders whose inputs the turn has taken in, and those of
// plan mode. Nil means no limits. An input that is added later can only narrow them.
func (j *judge) ceilingOf(turn protocol.TurnID, inputs []protocol.QueuedInput) *protocol.Ceiling {
	all := []*protocol.Ceiling{authority.Planning(*j.config, j.sessionCeiling)}
	for _, in := range inputs {
		if in.TurnID == turn && in.State != protocol.InputPendingActive {
			all = append(all, in.Ceiling)
		}
	}
	return authority.MeetAll(all...)
}

// inputMessages returns the messages of the inputs that the turn began with, in queue order.
func (r *run) inputMessages(inputs []protocol.QueuedInput) []protocol.Message {
	var msgs []protocol.Message
	for _, in := range inputs {
		if slices.Contains(r.journal.begin.Inputs, in.ID) {
			msgs = append(msgs, in.Message(r.id))
		}
	}
	return msgs
}

// recall reads the journal and the decisions that an earlier run of the daemon stored for the turn. Until a stored
// effect shows otherwise, a model call may have been lost with that run.
func (r *run) recall(ctx context.Context) error {
	r.mayRepeatReply = true
	if err := r.journal.load(ctx, r.eng.store); err != nil {
		return err
	}
	return r.asks.recall(ctx)
}

// known returns the stored answer to an effect. A batch counts as known only if all its calls have results and
// nothing of them is left to do.
func (r *run) known(e turn.Effect) (turn.Response, bool, error) {
	if e.Kind == turn.EffectTools && len(r.journal.replay[e.ID]) > 0 {
		return r.knownBatch(e)
	}
	return r.journal.known(e)
}

// replayJournal feeds stored answers to the machine, up to the first effect that must be performed. It calls
// neither tools nor the model. It ends before the turn counts as running, so that clients that attach find the
// items that the log has. If the journal does not fit the driver, the turn fails here and keeps its earlier
// results.
func (r *run) replayJournal() error {
	for len(r.journal.replay) > 0 {
		effect, ok := r.journal.next()
		if !ok {
			return nil
		}
		if !effect.Waits() {
			r.noteEmit(effect)
			continue
		}
		answer, known, err := r.known(effect)
		if changed, ok := errors.AsType[*JournalError](err); ok {
			r.trace.diff(changed)
			r.fail(effect, changed) // keeps the results up to here; nothing runs again
			return nil
		}
		if !known || err != nil {
			return err
		}
		if effect.Kind == turn.EffectCheckpoint {
			r.seams.queuedMessages = nil // the stored answer contains them
		}
		r.journal.deliver(effect.ID, answer)
	}
	return nil
}
