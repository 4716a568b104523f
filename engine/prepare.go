package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// turnStart is a turn that starts.
type turnStart struct {
	turn     persistence.StoredTurn
	resumed  bool   // an earlier run of the daemon started it: read its journal
	newFrame bool   // it is the first turn of a frame that the previous commit opened
	lease    *lease // taken over by the turn; nil: the turn's goroutine gets one
}

// start starts the goroutine of a turn. A turn that cannot even be prepared ends with that as its outcome; an error means that not even
// this could be stored.
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

// startStored is start for a turn whose commit was made for something else: what stands in the way is tried again later. It returns the run
// that runs then; nil: none does.
func (ts *sessionTurns) startStored(s turnStart) *run {
	if err := ts.start(s); err != nil {
		ts.st.alarm.retryLater()
	}
	return ts.current
}

// newRun makes the run of a turn, which has not begun. It reads the session on its actor, and keeps of it what does not change.
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
	r.judge = judge{config: &r.journal.begin.Config, cwd: st.row.Cwd, sessionCeiling: st.row.Authority.Ceiling}
	r.trace = turnTrace{out: st.eng.Trace, session: st.id, turn: turn.ID, journal: &r.journal}
	r.store = &turnStore{session: st.session, owner: st, turn: turn.ID, life: r.life, halt: r.halt, journal: &r.journal, files: r.files, trace: r.trace}
	r.asks = asks{turnStore: r.store, judge: &r.judge}
	r.hooks = &hooks{session: st.session, caller: r, judge: &r.judge, trace: r.trace}
	r.seams = &seams{hooks: r.hooks, store: r.store, journal: &r.journal, result: &r.result, sessionAtStart: st.row}
	r.prompt = &prompt{seams: r.seams}
	r.emissions = emissions{eng: st.eng, turn: turn.ID, cwd: st.row.Cwd, life: r.life}
	return r
}

// discard ends a run that has ended or never began.
func (r *run) discard() {
	r.halt(nil)
	r.lease.release()
}

func (ts *sessionTurns) launch(r *run) {
	ts.current = r
	ts.st.show(ts.st) // before the turn runs, so that whoever stops all turns finds it
	if !ts.st.eng.group.GoTurn(r.drive) {
		ts.current = nil
		r.discard()
	}
}

// beginning is what a turn begins with that starts now.
func (ts *sessionTurns) beginning(id protocol.TurnID) beginning {
	head, at := ts.st.row.Head, ts.st.history.leaf()
	return beginning{
		Config: ts.st.row.Config, Leaf: head.Leaf, Branch: at.Branch, Generation: at.Generation, Frame: head.Frame,
		Inputs: ts.st.queue.BeginsWith(id),
	}
}

// provide gives a turn that has its plugins what it needs of the session, and starts the monitors that wait for a turn.
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
	if err := ts.st.monitors.startArmed(ts.st.ctx, true); err != nil {
		ts.st.eng.Log.Error("armed monitors did not start; the next turn tries again", "session", ts.st.id, "error", err)
	}
	return nil
}

// beginning is what the turn has begun with, by this run of the daemon or an earlier one.
func (r *run) beginning() beginning { return r.journal.begin }

// begin has a turn begin with its plugins and what the session gives it: itself, its history, the options of the frame, and its queue. It runs
// on the actor, which may look at the turn from then on.
func (r *run) begin(about protocol.Session, past []*protocol.Message, options *protocol.TurnOptions, inputs []protocol.QueuedInput) (err error) {
	begin := &r.journal.begin
	if !r.journal.begun {
		if begin.TurnOptions, err = plugin.MergeTurnOptions(options, optionsOf(inputs, begin.Inputs)); err != nil {
			return err
		}
	}
	r.model = r.eng.Models.configured(begin.Config.Model).Provider
	r.prompt.set, r.prompt.catalog = r.lease.set, r.lease.catalog
	r.hooks.plugins, r.judge.plugins, r.judge.base = r.lease.plugins, r.lease.plugins, r.lease.set.composer.Base()
	r.judge.ceiling = r.judge.ceilingOf(r.id, inputs)
	r.seams.sessionAtStart, r.seams.past = about, past
	r.seams.input, r.seams.inputs = r.inputMessages(inputs), pluginInputs(inputs, begin.Inputs)
	return nil
}

// prepare makes the machine of a turn, which then takes in what an earlier run of the daemon left in the journal. It opens the plugins
// if nobody has. A panic of a plugin is an error of the turn.
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

// ceilingOf is what a turn is held to by those whose inputs it has taken in, and by plan mode; nil: nobody holds it to anything.
func (j *judge) ceilingOf(turn protocol.TurnID, inputs []protocol.QueuedInput) *protocol.Ceiling {
	all := []*protocol.Ceiling{authority.Planning(*j.config, j.sessionCeiling)}
	for _, in := range inputs {
		if in.TurnID == turn && in.State != protocol.InputPendingActive {
			all = append(all, in.Ceiling)
		}
	}
	return authority.MeetAll(all...)
}

func (r *run) inputMessages(inputs []protocol.QueuedInput) []protocol.Message {
	var msgs []protocol.Message
	for _, in := range inputs {
		if slices.Contains(r.journal.begin.Inputs, in.ID) {
			msgs = append(msgs, inputMessage(r.id, in))
		}
	}
	return msgs
}

func inputMessage(id protocol.TurnID, in protocol.QueuedInput) protocol.Message {
	if in.Wake != nil {
		m := protocol.UserMessage(in.Input, &protocol.Origin{Kind: protocol.OriginProcess, TurnID: id, InputID: in.ID, Cause: &in.Wake.Cause})
		m.Role = protocol.RoleEvent
		return m
	}
	return protocol.UserMessage(in.Input, &protocol.Origin{Kind: protocol.OriginTurnInput, TurnID: id, InputID: in.ID})
}

// pluginInputs are what plugins are given with a turn: of all inputs that it begins with, the newest for each.
func pluginInputs(inputs []protocol.QueuedInput, ids []protocol.InputID) protocol.PluginInputs {
	all := protocol.PluginInputs{}
	for _, in := range inputs {
		if slices.Contains(ids, in.ID) {
			maps.Copy(all, in.PluginInputs)
		}
	}
	return all
}

// recall reads what an earlier run of the daemon left of the turn.
func (r *run) recall(ctx context.Context) error {
	r.mayRepeatReply = true
	if err := r.journal.load(ctx, r.eng.store); err != nil {
		return err
	}
	return r.asks.recall(ctx)
}

// known finds the answer to an effect in the journal. A batch is known only when all of its calls are.
func (r *run) known(e turn.Effect) (turn.Response, bool, error) {
	if e.Kind == turn.EffectTools && len(r.journal.replay[e.ID]) > 0 {
		return r.knownBatch(e)
	}
	return r.journal.known(e)
}

// replayJournal has the machine take in what is known, up to the first effect that must be performed. It does no IO,
// so whoever attaches from then on finds the items that the log already tells of.
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
