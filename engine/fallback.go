package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// modelOf returns the model of a call: that of the turn, or the one that the turn fell back to. A model that was removed from the
// configuration has no provider.
func (r *run) modelOf(call *turn.ModelCall) Model {
	if call.Fallback == "" {
		m := r.eng.Models.configured(r.journal.begin.Config.Model)
		return Model{Spec: r.journal.begin.Config.Model, Provider: r.model, Price: m.Price, Fallback: m.Fallback}
	}
	if m, err := r.eng.Models.named(call.Fallback); err == nil {
		return m
	}
	return Model{Spec: protocol.ModelSpec{ID: call.Fallback}}
}

// stream calls the model. If the model was removed from the configuration after the turn began, stream yields a validation error that
// says how to choose another one.
func (m *Model) stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	if m.Provider != nil {
		return m.Provider.Stream(ctx, req)
	}
	return func(yield func(provider.Chunk, error) bool) {
		yield(provider.Chunk{}, &provider.Error{Kind: provider.KindValidation, Code: "model_not_configured",
			Message: fmt.Sprintf("the model %s of %s is not configured; choose another with session/configure", req.Model.ID, req.Model.Provider)})
	}
}

// fallback returns the name of the model that the turn asks after a call failed; "" if the failure ends the turn. A turn falls back once,
// before any output of the call, and never to the model that failed.
func (r *run) fallback(call *turn.ModelCall, answer *turn.ModelReply, failed error) string {
	failure, ok := errors.AsType[*provider.Error](failed)
	if !ok || answer.Error == nil || call.Fallback != "" || answer.Reply.Streamed || len(answer.Reply.Parts) > 0 || !failure.Elsewhere() {
		return ""
	}
	first := r.modelOf(call)
	second, err := r.eng.Models.named(first.Fallback)
	if first.Fallback == "" || err != nil || second.Spec.Provider == first.Spec.Provider && second.Spec.ID == first.Spec.ID {
		return ""
	}
	return first.Fallback
}
