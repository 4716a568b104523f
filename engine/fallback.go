package engine

import (
	"errors"

	"lashd/engine/models"
	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// modelOf returns the model of a call: that of the turn, or the one that the turn fell back to. A model that was removed from the
// configuration has no provider.
func (r *run) modelOf(call *turn.ModelCall) models.Model {
	if call.Fallback == "" {
		m := r.eng.Models.Configured(r.journal.begin.Config.Model)
		return models.Model{Spec: r.journal.begin.Config.Model, Provider: r.model, Price: m.Price, Fallback: m.Fallback}
	}
	if m, err := r.eng.Models.Named(call.Fallback); err == nil {
		return m
	}
	return models.Model{Spec: protocol.ModelSpec{ID: call.Fallback}}
}

// fallback returns the name of the model that the turn asks after a call failed; "" if the failure ends the turn. A turn falls back once,
// before any output of the call, and never to the model that failed.
func (r *run) fallback(call *turn.ModelCall, answer *turn.ModelReply, failed error) string {
	failure, ok := errors.AsType[*provider.Error](failed)
	if !ok || answer.Error == nil || call.Fallback != "" || answer.Reply.Streamed || len(answer.Reply.Parts) > 0 || !failure.Elsewhere() {
		return ""
	}
	first := r.modelOf(call)
	second, err := r.eng.Models.Named(first.Fallback)
	if first.Fallback == "" || err != nil || second.Spec.Provider == first.Spec.Provider && second.Spec.ID == first.Spec.ID {
		return ""
	}
	return first.Fallback
}
