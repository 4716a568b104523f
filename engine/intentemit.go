package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// emission is an occurrence that a call wants to be told of. Its key is the id of the intent: told again, it is the same one.
func (r *run) emission(in intent) *protocol.TriggerEmitParams {
	want := in.Want.EmitTrigger
	return &protocol.TriggerEmitParams{
		Type: want.Type, Cwd: r.cwd, SourceKey: want.SourceKey, OccurrenceKey: in.ID, Payload: want.Payload,
	}
}

// checkEmissions refuses what nobody could be told of, before the actor is asked: whose types they are is for plugins to say.
func (r *run) checkEmissions(ctx context.Context, s *stage) {
	for i := range s.intents {
		in := &s.intents[i]
		if in.Refused != "" || in.Kind != protocol.IntentEmit {
			continue
		}
		if _, err := r.eng.checkEmit(ctx, r.emission(*in)); err != nil {
			refuse(&in.IntentOutcome, err)
		}
	}
}

// owe notes what is to be emitted because of a call whose result is stored.
func (r *run) owe(s *stage) {
	if s.reply == nil {
		return
	}
	for i, out := range s.reply.Output.Intents {
		if out.Kind == protocol.IntentEmit && out.Refused == "" && i < len(s.intents) {
			r.owed = append(r.owed, r.emission(s.intents[i]))
		}
	}
}

// pay emits what is owed. A daemon that dies before leaves it to the next one, which emits all of the turn's once more.
func (r *run) pay() {
	for len(r.owed) > 0 {
		_, err := r.eng.EmitTrigger(r.life, r.owed[0])
		switch {
		case noSpace(err) && pause(r.life, spaceCheck) == nil:
			continue
		case r.left():
			return
		case err != nil:
			r.eng.Log.Error("what a tool tells of is not emitted", "turn", r.id, "type", r.owed[0].Type, "error", err)
		}
		r.owed = r.owed[1:]
	}
}
