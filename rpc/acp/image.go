package acp

import (
	"encoding/base64"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// maxImage is the size in bytes of images that the editor is shown. Of larger ones it
// gets the name: editors limit the length of a message.
const maxImage = 4 << 20

// imageOf returns an attachment as an image. It returns false if it is none, or if
// it cannot be shown.
func (v *view) imageOf(a *protocol.Attachment) (sdk.ContentBlock, bool) {
	if v.image == nil || !strings.HasPrefix(a.Type, "image/") {
		return sdk.ContentBlock{}, false
	}
	return v.image(a)
}

// images returns the images among the attachments of a result as content.
func (v *view) images(all []protocol.Attachment) (parts []sdk.ToolCallContent) {
	for i := range all {
		if block, ok := v.imageOf(&all[i]); ok {
			parts = append(parts, sdk.ToolContent(block))
		}
	}
	return parts
}

// image reads an image from the daemon, which keeps the contents of attachments apart
// from the history.
func (s *ref) image(a *protocol.Attachment) (sdk.ContentBlock, bool) {
	data := a.Data
	for whole := len(data) > 0; !whole; {
		p := protocol.ArtifactReadParams{Digest: a.Digest, Offset: int64(len(data))}
		var r protocol.ArtifactReadResult
		err := s.daemon.call(s.ctx, "artifact/read", p, &r)
		if err != nil || r.Size > maxImage || len(r.Bytes) == 0 {
			s.Log.Debug("could not show an image", "session", s.id, "size", r.Size, "error", err)
			return sdk.ContentBlock{}, false
		}
		data = append(data, r.Bytes...)
		whole = int64(len(data)) >= r.Size
	}
	return sdk.ImageBlock(base64.StdEncoding.EncodeToString(data), a.Type), len(data) <= maxImage
}
