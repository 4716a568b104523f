package engine

import (
	"errors"
	"slices"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// prepare pins what a turn works with and makes its machine, which then takes in what an earlier run of the daemon
// left in the journal. inputs are those of the session, the turn's among them. A panic of a plugin is an error of the turn.
func (st *state) prepare(r *run, inputs []protocol.QueuedInput) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = st.eng.panicked("turn", r.id, p)
		}
	}()
	r.begin = beginning{
		Config: st.row.Config, Leaf: st.row.Head.Leaf, Branch: st.branch, Generation: st.row.Head.Generation,
		Frame: st.row.Head.Frame, Inputs: beginsWith(inputs, r.id),
	}
	if r.resumed {
		if err := st.resume(r); err != nil {
			return err
		}
	}
	tools, err := st.opened(r.begin.Config)
	if err != nil {
		return err
	}
	r.lease = st.newLease(st.ctx, tools)
	if !r.journal.begun {
		if r.begin.TurnOptions, err = plugin.MergeTurnOptions(st.recorded.of(r.begin.Frame), optionsOf(inputs, r.begin.Inputs)); err != nil {
			return err
		}
	}
	r.base = tools.composer.Base()
	r.plugins, r.catalog, r.model = r.lease.plugins, r.lease.catalog, st.eng.configured(r.begin.Config.Model).Provider
	if r.begin.Leaf == st.row.Head.Leaf {
		r.past, err = st.past()
	} else {
		r.past, err = st.pastAt(persistence.Cursor{Branch: r.begin.Branch, Generation: r.begin.Generation})
	}
	if err != nil {
		return err
	}
	r.ceiling = r.ceilingOf(inputs)
	r.input = inputMessages(inputs, r)
	r.forPlugins = pluginInputs(inputs, r.begin.Inputs)
	if r.plugins.HasBeforeTurn() && !r.journal.begun {
		return nil // the hooks come first, beside the actor
	}
	r.assemble()
	return r.replayJournal()
}

// assemble makes the machine of what the turn begins with.
func (r *run) assemble() {
	input, shown := r.input, []protocol.Message(nil)
	if p := r.begin.Prepared; p != nil {
		var lasting []protocol.Message
		lasting, shown = apart(p.Messages)
		input = append(slices.Clip(input), lasting...)
	}
	r.machine = turn.New(r.plugins.Driver(), turn.Config{
		Input: input, Transient: shown, Budget: r.begin.Config.Budget, Generation: r.begin.Config.Generation, Options: r.begin.TurnOptions,
	})
	if p := r.begin.Prepared; p != nil && p.Abort != nil {
		r.machine.Fail(p.Outcome, *p.Abort)
	}
	r.noteNodes()
}

// beginsWith are the inputs that a turn begins with. Those that were steered at it come in at a checkpoint.
func beginsWith(inputs []protocol.QueuedInput, id protocol.TurnID) []protocol.InputID {
	var ids []protocol.InputID
	for _, in := range inputs {
		if in.TurnID == id && (in.State == protocol.InputQueued || in.State == protocol.InputDeferred) {
			ids = append(ids, in.ID)
		}
	}
	return ids
}

// ceilingOf is what a turn is held to by those whose inputs it has taken in, and by plan mode; nil: nobody holds it to anything.
func (r *run) ceilingOf(inputs []protocol.QueuedInput) *protocol.Ceiling {
	all := []*protocol.Ceiling{authority.Planning(r.begin.Config, r.about.Authority.Ceiling)}
	for _, in := range inputs {
		if in.TurnID == r.id && in.State != protocol.InputPendingActive {
			all = append(all, in.Ceiling)
		}
	}
	return authority.MeetAll(all...)
}

func inputMessages(inputs []protocol.QueuedInput, r *run) []protocol.Message {
	var msgs []protocol.Message
	for _, in := range inputs {
		if slices.Contains(r.begin.Inputs, in.ID) {
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

// resume reads what an earlier run of the daemon left of the turn.
func (st *state) resume(r *run) error {
	r.lost = true
	if err := r.loadJournal(st.ctx); err != nil {
		return err
	}
	before, err := st.eng.store.TurnDecisions(st.ctx, r.id)
	if err != nil {
		return err
	}
	r.asked = map[asking]protocol.Decision{}
	for _, d := range before {
		if d.Call != nil {
			r.asked[asks(d)] = d
		}
	}
	return nil
}

// replayJournal has the machine take in what is known, up to the first effect that must be performed. It does no IO,
// so whoever attaches from then on finds the items that the log already tells of.
func (r *run) replayJournal() error {
	for len(r.journal.replay) > 0 {
		effect, ok := r.machine.Next()
		if !ok {
			return nil
		}
		if !effect.Waits() {
			r.noteEmit(effect)
			continue
		}
		answer, known, err := r.known(effect)
		if changed, ok := errors.AsType[*JournalError](err); ok {
			r.traceDiff(changed)
			r.fail(effect, changed) // what was true until here is kept; nothing is run again
			return nil
		}
		if !known || err != nil {
			return err
		}
		if effect.Kind == turn.EffectCheckpoint {
			r.held = nil // they are in the answer
		}
		r.machine.Deliver(effect.ID, answer)
		r.noteNodes()
	}
	return nil
}
