package engine

import (
	"context"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// toolHost is what a tool call may ask of lashd.
type toolHost struct {
	session *session
	turn    protocol.TurnID
	call    protocol.CallID
}

// Progress implements tool.Host.
func (h *toolHost) Progress(text string) {
	h.session.feed.show(protocol.Event{
		Type: protocol.EventToolProgress, TurnID: h.turn, ToolCall: &protocol.ToolCall{CallID: h.call}, Text: text,
	})
}

// WriteArtifact implements tool.Host.
func (h *toolHost) WriteArtifact(ctx context.Context, mediaType string, data []byte) (protocol.ArtifactRef, error) {
	blob, err := h.session.eng.store.PrepareBlob(data)
	if err != nil {
		return protocol.ArtifactRef{}, err
	}
	ref := protocol.ArtifactRef{Digest: blob.Digest, Size: blob.Size, Type: mediaType}
	_, err = do(context.WithoutCancel(ctx), h.session.eng, h.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		_, err := st.commit(ctx, &persistence.Commit{Blobs: []persistence.Blob{blob}})
		return struct{}{}, err
	})
	return ref, err
}

// Touch implements tool.Host. File points are not taken yet, so there is nothing to do before a change.
func (h *toolHost) Touch(context.Context, string) error { return nil }
