package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// deafModel answers only when the test lets it, even if the request was cancelled.
type deafModel struct{ asked, answer chan struct{} }

func newDeafModel() *deafModel { return &deafModel{make(chan struct{}, 10), make(chan struct{})} }

func (m *deafModel) provider() provider.Provider {
	return modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		m.asked <- struct{}{}
		<-m.answer
		for chunk, err := range replies(scripted.Reply{Text: "ok"}).Stream(context.WithoutCancel(ctx), req) {
			if !yield(chunk, err) {
				return
			}
		}
	})
}

func TestDeletedDuringModelCall(t *testing.T) {
	complete := func(ctx context.Context, host plugin.Capabilities) error {
		_, err := host.Models.Complete(ctx, &protocol.CompletionParams{Messages: []protocol.Message{userSays("sum up")}})
		return err
	}
	// deletes deletes a session while one of its hooks waits for the model, then lets the model answer.
	deletes := func(t *testing.T, m *deafModel, d *daemon, id protocol.SessionID, failed <-chan error) {
		<-m.asked
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		close(m.answer)
		d.stop()
		if err := <-failed; !errors.Is(err, persistence.ErrDeleted) && !errors.Is(err, context.Canceled) {
			t.Errorf("the hook got %v", err)
		}
	}
	t.Run("plugin/HC-08 a session that is deleted during a model call of a hook leaves memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			failed := make(chan error, 1)
			m := newDeafModel()
			d := start(t, setup{model: m.provider(), plugins: plugins(hooked{"a", func(r *plugin.Registrar) {
				r.Context().Transform(1, func(ctx context.Context, v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
					err := complete(ctx, v.Host)
					failed <- err
					return pc, err
				})
			}})})
			id := d.session(t)
			d.begin(t, id, "go")
			deletes(t, m, d, id, failed)
		})
	})
}
