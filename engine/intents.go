package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// intent is what a call wants, as it stands in the journal until it is carried out: itself, or why it is refused already.
type intent struct {
	Want *protocol.ToolIntent `json:"want,omitempty"`
	protocol.IntentOutcome
}

// recordIntents notes what a call wants, for when its batch is over. Where nothing comes after it, it is told at once that nothing is done.
func (m *callMaker) recordIntents(s *toolCall, reply *turn.ToolReply) {
	s.intents = m.checkIntents(s, s.attemptIntents, reply.Output.Status)
	if !m.caller.appliesIntents() || s.Parent != "" {
		var outcomes []protocol.IntentOutcome
		for _, in := range s.intents {
			outcomes = append(outcomes, in.IntentOutcome)
		}
		setOutcomes(reply, outcomes)
		s.intents = nil
	}
}

// setOutcomes puts what became of intents into a reply, also into what the model sees of it.
func setOutcomes(reply *turn.ToolReply, outcomes []protocol.IntentOutcome) {
	reply.Output.Intents = outcomes
	if reply.Shown != nil {
		shown := *reply.Shown
		shown.Intents = outcomes
		reply.Shown = &shown
	}
}

// checkIntents are what a call wants, within the limits: what is beyond them is told of and not kept.
func (m *callMaker) checkIntents(s *toolCall, wanted []protocol.ToolIntent, came protocol.OutputStatus) (all []intent) {
	kinds, size := map[protocol.IntentKind]int{}, 0
	for i := range wanted {
		in := intent{Want: &wanted[i]}
		in.ID, in.Kind = m.intentID(s, i), in.Want.Kind()
		text, err := json.Marshal(in.Want)
		size += len(text)
		kinds[in.Kind]++
		switch {
		case i == protocol.MaxIntents:
			in.Refused, in.Kind = protocol.IntentTooMany, ""
			in.Message = fmt.Sprintf("the call has %d intents; at most %d are allowed, and the rest are dropped", len(wanted), protocol.MaxIntents)
		case !m.caller.appliesIntents() || s.Parent != "":
			in.Refused = protocol.IntentNoTurn
		case came != protocol.OutputSuccess:
			in.Refused = protocol.IntentCallFailed
		case in.Kind == "" || err != nil:
			in.Refused = protocol.IntentMalformed
		case kinds[in.Kind] > protocol.MaxIntentsAKind:
			in.Refused = protocol.IntentTooManyKind
		case size > protocol.MaxIntentBytes:
			in.Refused = protocol.IntentTooLarge
		}
		if in.Refused != "" {
			in.Want = nil
		}
		all = append(all, in)
		if i == protocol.MaxIntents {
			break
		}
	}
	return all
}

// intentID is the same whenever the call is made.
func (m *callMaker) intentID(s *toolCall, place int) string {
	sum := sha256.Sum256(encode([]any{m.session.id, m.caller.journalID(), s.CallID, place}))
	return "int_" + hex.EncodeToString(sum[:16])
}

// wants tells whether something of the call is left to be carried out.
func (s *toolCall) wants() bool {
	return s.reply != nil && len(s.intents) > 0 && len(s.reply.Output.Intents) == 0
}

// commitIntents carries out what the calls of a batch want, in the order of the calls, in the commit that stores what became of it together
// with their results. So it happens once, whatever happens to the daemon.
func (b *batch) commitIntents(ctx context.Context) error {
	var wanting []*toolCall
	for _, s := range b.calls {
		if s.wants() {
			b.emissions.check(ctx, s)
			wanting = append(wanting, s)
		}
	}
	if len(wanting) == 0 {
		return nil
	}
	// Not with ctx: what calls of a cancelled turn want is refused, and that is stored.
	err := b.store.storeWhenSpace(b.store.life, func(actor context.Context, st *state) error {
		return b.applyIntents(actor, st, wanting, ctx.Err() != nil)
	})
	if err != nil {
		return err
	}
	for _, s := range wanting {
		b.emissions.add(s)
	}
	b.emissions.send()
	return nil
}

// applyIntents does what calls want, in one commit with their replies, unless the turn is over.
func (b *batch) applyIntents(ctx context.Context, st *state, wanting []*toolCall, over bool) (err error) {
	c := b.store.change(st)
	defer func() {
		if err != nil {
			c.Drop()
		}
	}()
	g := &intentGate{batch: b, st: st, tasks: st.tasks.In(c), turnOver: over}
	replies := make([]turn.ToolReply, len(wanting))
	for i, s := range wanting {
		if replies[i], err = g.resolve(ctx, s); err != nil {
			return err
		}
		settled := *s
		settled.reply = &replies[i]
		c.Effects = append(c.Effects, b.row(&settled))
	}
	if err := c.Finish(); err != nil { // adds wakes before the commit adds file events
		return err
	}
	if err := b.store.commit(ctx, st, c); err != nil {
		return err
	}
	for i, s := range wanting {
		s.reply, s.stored = &replies[i], true
	}
	g.send()
	return nil
}

// emissions are what the calls of a turn tell triggers of. A daemon that dies before it is told leaves it to the next one.
type emissions struct {
	eng     *Engine
	turn    protocol.TurnID
	cwd     string
	life    context.Context               // done when the turn is suspended or has ended
	pending []*protocol.TriggerEmitParams // results stored, not sent yet
}

// emitParams is an occurrence that a call wants to be told emitParams. Its key is the id emitParams the intent: told again, it is the same one.
func (e *emissions) emitParams(in intent) *protocol.TriggerEmitParams {
	want := in.Want.EmitTrigger
	return &protocol.TriggerEmitParams{
		Type: want.Type, Cwd: e.cwd, SourceKey: want.SourceKey, OccurrenceKey: in.ID, Payload: want.Payload,
	}
}

// check refuses what nobody could be told of, before the actor is asked: whose types they are is for plugins to say.
func (e *emissions) check(ctx context.Context, s *toolCall) {
	for i := range s.intents {
		in := &s.intents[i]
		if in.Refused != "" || in.Kind != protocol.IntentEmit {
			continue
		}
		if err := e.eng.Triggers.CheckEmit(ctx, e.emitParams(*in)); err != nil {
			refuse(&in.IntentOutcome, err)
		}
	}
}

// add notes what is to be emitted because of a call whose result is stored.
func (e *emissions) add(s *toolCall) {
	if s.reply == nil {
		return
	}
	for i, out := range s.reply.Output.Intents {
		if out.Kind == protocol.IntentEmit && out.Refused == "" && i < len(s.intents) {
			e.pending = append(e.pending, e.emitParams(s.intents[i]))
		}
	}
}

// send emits what is owed. A daemon that dies before leaves it to the next one, which emits all of the turn's once more.
func (e *emissions) send() {
	for len(e.pending) > 0 {
		_, err := e.eng.Triggers.Emit(e.life, e.pending[0])
		switch {
		case noSpace(err) && pause(e.life, spaceCheck) == nil:
			continue
		case e.life.Err() != nil:
			return
		case err != nil:
			e.eng.Log.Error("occurrence emitted by a tool was not stored; its triggers do not fire", "turn", e.turn, "type", e.pending[0].Type, "error", err)
		}
		e.pending = e.pending[1:]
	}
}
