package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// begin pins what a turn begins with, or takes it from the journal of an earlier run of the daemon.
func (st *state) begin(r *run) error {
	at := st.history.leaf()
	r.journal.begin = beginning{
		Config: st.row.Config, Leaf: st.row.Head.Leaf, Branch: at.Branch, Generation: at.Generation,
		Frame: st.row.Head.Frame, Inputs: st.queue.BeginsWith(r.id),
	}
	if r.result.resumed {
		return st.resume(r)
	}
	return nil
}

// collect gives a turn that has its plugins what the session has for it.
func (st *state) collect(r *run) (err error) {
	inputs, begin, t := st.queue.Inputs(), &r.journal.begin, r.lease.box
	if !r.journal.begun {
		if begin.TurnOptions, err = plugin.MergeTurnOptions(st.stored.optionsOf(begin.Frame), optionsOf(inputs, begin.Inputs)); err != nil {
			return err
		}
	}
	r.model = st.eng.Models.configured(begin.Config.Model).Provider
	r.prompt.set, r.prompt.catalog = t, r.lease.catalog
	r.hooks.plugins, r.judge.plugins, r.judge.base = r.lease.plugins, r.lease.plugins, t.composer.Base()
	r.seams.about = st.row
	if begin.Leaf == st.row.Head.Leaf {
		r.seams.past, err = st.history.messages()
	} else {
		r.seams.past, err = st.history.messagesAt(persistence.Cursor{Branch: begin.Branch, Generation: begin.Generation})
	}
	if err != nil {
		return err
	}
	r.judge.ceiling = r.judge.ceilingOf(r.id, inputs)
	r.seams.input = inputMessages(inputs, r)
	r.seams.inputs = pluginInputs(inputs, begin.Inputs)
	if err := st.monitors.beginArmed(st.ctx, true); err != nil {
		st.eng.Log.Error("monitors are not begun yet", "session", st.id, "error", err)
	}
	return nil
}

// prepare makes the machine of a turn, which then takes in what an earlier run of the daemon left in the journal. It opens the plugins
// if nobody has. A panic of a plugin is an error of the turn.
func prepare(r *run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.eng.group.Recovered("turn", r.id, p)
		}
	}()
	if r.lease == nil {
		if r.lease, err = r.owner.plugins.lend(r.life, &r.journal.begin.Config); err != nil {
			return err
		}
		if _, err := ask(r.store, func(_ context.Context, st *state) (struct{}, error) { return struct{}{}, st.collect(r) }); err != nil {
			return err
		}
	}
	if r.hooks.plugins.HasBeforeTurn() && !r.journal.begun {
		return nil // the hooks come first
	}
	r.seams.start()
	return r.replayJournal()
}

// ceilingOf is what a turn is held to by those whose inputs it has taken in, and by plan mode; nil: nobody holds it to anything.
func (j *judge) ceilingOf(turn protocol.TurnID, inputs []protocol.QueuedInput) *protocol.Ceiling {
	all := []*protocol.Ceiling{authority.Planning(*j.config, j.asker)}
	for _, in := range inputs {
		if in.TurnID == turn && in.State != protocol.InputPendingActive {
			all = append(all, in.Ceiling)
		}
	}
	return authority.MeetAll(all...)
}

func inputMessages(inputs []protocol.QueuedInput, r *run) []protocol.Message {
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

// resume reads what an earlier run of the daemon left of the turn.
func (st *state) resume(r *run) error {
	r.lost = true
	if err := r.journal.load(st.ctx, st.eng.store); err != nil {
		return err
	}
	return r.asks.recall(st.ctx)
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
			r.fail(effect, changed) // what was true until here is kept; nothing is run again
			return nil
		}
		if !known || err != nil {
			return err
		}
		if effect.Kind == turn.EffectCheckpoint {
			r.seams.held = nil // they are in the answer
		}
		r.journal.deliver(effect.ID, answer)
	}
	return nil
}
