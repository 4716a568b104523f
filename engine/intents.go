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

// intent is one effect that a tool asks lashd to apply after its call: start, signal or cancel a task, add a task
// event, or emit an occurrence for triggers. The journal stores it with the result of the call until the batch
// ends. An intent that was refused early has no Want, only the reason in its outcome.
type intent struct {
	Want *protocol.ToolIntent `json:"want,omitempty"`
	protocol.IntentOutcome
}

// recordIntents takes over the intents of a call that just returned; commitIntents applies them when the batch
// ends. A call of a caller that applies no intents, and a call that another call makes, gets refusals in its reply
// at once.
func (m *callMaker) recordIntents(s *toolCall, reply *turn.ToolReply) {
	s.intents = m.checkIntents(s, s.attemptIntents, reply.Output.Status)
	if !m.mayIntend(s) {
		var outcomes []protocol.IntentOutcome
		for _, in := range s.intents {
			outcomes = append(outcomes, in.IntentOutcome)
		}
		setOutcomes(reply, outcomes)
		s.intents = nil
	}
}

// setOutcomes puts the outcomes of intents into a reply, and into the version of it that the model sees. It copies
// that version, which hooks may share.
func setOutcomes(reply *turn.ToolReply, outcomes []protocol.IntentOutcome) {
	reply.Output.Intents = outcomes
	if reply.Shown != nil {
		shown := *reply.Shown
		shown.Intents = outcomes
		reply.Shown = &shown
	}
}

// checkIntents returns the intents of a call, refused where they break a limit: protocol.MaxIntents for the call,
// MaxIntentsAKind for each kind, and MaxIntentBytes of JSON for all together. The first intent over MaxIntents is
// kept as a refusal, and the rest are dropped. A call that did not succeed has all its intents refused.
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
		case !m.mayIntend(s):
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

// mayIntend reports whether the intents of a call are applied. Those of a call that another call makes are not; a
// code cell is no call.
func (m *callMaker) mayIntend(s *toolCall) bool {
	return m.caller.appliesIntents() && (s.Parent == "" || s.cell)
}

// intentID returns the id of the intent at a position. It depends only on the session, the turn, the call and the
// position, so a call that runs again gets the same ids. Receivers use them to drop repetitions.
func (m *callMaker) intentID(s *toolCall, place int) string {
	sum := sha256.Sum256(encode([]any{m.session.id, m.caller.journalID(), s.CallID, place}))
	return "int_" + hex.EncodeToString(sum[:16])
}

// wants reports whether the call has intents without outcomes, which a batch must apply before its results are
// complete.
func (s *toolCall) wants() bool {
	return s.reply != nil && len(s.intents) > 0 && len(s.reply.Output.Intents) == 0
}

// commitIntents applies the intents of a batch in the order of its calls. One commit stores the changes, the
// outcomes and the results of the calls, so a crash neither loses nor repeats an intent. It runs on the goroutine
// of the turn, waits while the disk is full, and sends emissions after the commit.
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

// applyIntents applies the intents of calls in one commit with their replies. It runs on the session's actor. With
// over set, the turn was cancelled and every intent is refused. After an error nothing is stored and the calls
// keep the replies that they had.
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

// emissions are the occurrences that tool calls of a turn emit for triggers. They are sent after the commit that
// stores the results of the calls, on the goroutine of the turn. If the daemon dies before it sends them, the
// resumed turn sends them again; the occurrence key makes the registry drop repetitions.
type emissions struct {
	eng     *Engine
	turn    protocol.TurnID
	cwd     string
	life    context.Context               // done when the turn is suspended or has ended
	pending []*protocol.TriggerEmitParams // results stored, not sent yet
}

// emitParams returns the request that emits the occurrence of an intent. The occurrence key is the id of the
// intent, so that a repetition counts as the same occurrence.
func (e *emissions) emitParams(in intent) *protocol.TriggerEmitParams {
	want := in.Want.EmitTrigger
	return &protocol.TriggerEmitParams{
		Type: want.Type, Cwd: e.cwd, SourceKey: want.SourceKey, OccurrenceKey: in.ID, Payload: want.Payload,
	}
}

// check refuses emissions that the trigger registry would reject, such as an unknown event type. It calls plugins
// to find the types, so it runs before the intents reach the actor.
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

// add queues the accepted emissions of a call whose result is stored. Without a result it does nothing.
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

// send emits what is queued, in order, and waits while the disk is full. Any other failure is logged, and that
// occurrence is lost. It returns early when the turn is suspended: the daemon that resumes the turn emits
// everything again.
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
