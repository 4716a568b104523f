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

// want notes what a call wants, for when its batch is over. Where nothing comes after it, it is told at once that nothing is done.
func (r *run) want(s *stage, reply *turn.ToolReply) {
	s.intents = r.intentsOf(s, s.wanted, reply.Output.Status)
	if r.owner == nil || s.call.Parent != "" {
		var outcomes []protocol.IntentOutcome
		for _, in := range s.intents {
			outcomes = append(outcomes, in.IntentOutcome)
		}
		settleIntents(reply, outcomes)
		s.intents = nil
	}
}

// settleIntents puts what became of intents into a reply, also into what the model sees of it.
func settleIntents(reply *turn.ToolReply, outcomes []protocol.IntentOutcome) {
	reply.Output.Intents = outcomes
	if reply.Shown != nil {
		shown := *reply.Shown
		shown.Intents = outcomes
		reply.Shown = &shown
	}
}

// intentsOf are what a call wants, within the limits: what is beyond them is told of and not kept.
func (r *run) intentsOf(s *stage, wanted []protocol.ToolIntent, came protocol.OutputStatus) (all []intent) {
	kinds, size := map[protocol.IntentKind]int{}, 0
	for i := range wanted {
		in := intent{Want: &wanted[i]}
		in.ID, in.Kind = r.intentID(s, i), in.Want.Kind()
		text, err := json.Marshal(in.Want)
		size += len(text)
		kinds[in.Kind]++
		switch {
		case i == protocol.MaxIntents:
			in.Refused, in.Kind = protocol.IntentTooMany, ""
			in.Message = fmt.Sprintf("the call wants %d things, at most %d", len(wanted), protocol.MaxIntents)
		case r.owner == nil || s.call.Parent != "":
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
func (r *run) intentID(s *stage, place int) string {
	sum := sha256.Sum256(encode([]any{r.session.id, r.id, s.call.CallID, place}))
	return "int_" + hex.EncodeToString(sum[:16])
}

// wants tells whether something of the call is left to be carried out.
func (s *stage) wants() bool {
	return s.reply != nil && len(s.intents) > 0 && len(s.reply.Output.Intents) == 0
}

// drain carries out what the calls of a batch want, in the order of the calls, in the commit that stores what became of it together
// with their results. So it happens once, whatever happens to the daemon.
func (r *run) drain(ctx context.Context, stages []*stage) error {
	var wanting []*stage
	for _, s := range stages {
		if s.wants() {
			r.checkEmissions(ctx, s)
			wanting = append(wanting, s)
		}
	}
	if len(wanting) == 0 {
		return nil
	}
	if err := r.persist(r.life, func(ctx context.Context, st *state) error { return r.carryOut(ctx, st, wanting) }); err != nil {
		return err
	}
	for _, s := range wanting {
		r.owe(s)
	}
	r.pay()
	return nil
}

// carryOut does what calls want, in one commit with their replies.
func (r *run) carryOut(ctx context.Context, st *state, wanting []*stage) (err error) {
	c := st.turnChange(r)
	defer func() {
		if err != nil {
			c.Drop()
		}
	}()
	g := &gate{run: r, st: st, tasks: st.tasksIn(c)}
	replies := make([]turn.ToolReply, len(wanting))
	for i, s := range wanting {
		if replies[i], err = g.pass(ctx, s); err != nil {
			return err
		}
		settled := *s
		settled.reply = &replies[i]
		c.Effects = append(c.Effects, r.callRow(&settled))
	}
	if err := c.Finish(); err != nil { // wakes come before what is told of files
		return err
	}
	if err := st.commitTurn(ctx, r, c); err != nil {
		return err
	}
	for i, s := range wanting {
		s.reply, s.stored = &replies[i], true
	}
	g.send()
	return nil
}
