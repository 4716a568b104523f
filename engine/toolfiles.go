package engine

import (
	"context"

	"lashd/engine/attachment"
	"lashd/persistence"
)

// attachments returns the checks that every attachment passes before anything else of lashd gets it.
func (e *Engine) attachments() attachment.Policy {
	return attachment.Policy{Store: e.store, DenyURLs: e.DenyURLs}
}

// files returns the checks for what tools and plugins of the session return. They store large attachments in a commit of their own, before the
// result that refers to them, and wait for the actor.
func (s *session) files() attachment.Keeper {
	return attachment.Keeper{Policy: s.eng.attachments(), Session: s.key, Commit: func(ctx context.Context, blobs []persistence.Blob) error {
		_, err := do(ctx, s.eng, s.id, func(ctx context.Context, st *state) (struct{}, error) {
			return struct{}{}, st.commit(ctx, st.change(persistence.Commit{Blobs: blobs}))
		})
		return err
	}}
}
