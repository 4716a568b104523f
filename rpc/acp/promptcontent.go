package acp

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// inputOf converts the content blocks of a prompt into an input. Empty text blocks
// are skipped; a prompt without any other block is an error. Errors point to the
// block.
func (a *agent) inputOf(blocks []sdk.ContentBlock) ([]protocol.InputPart, error) {
	if len(blocks) == 0 {
		return nil, invalidParams("/prompt", "must have at least one block")
	}
	var parts []protocol.InputPart
	for i := range blocks {
		part, err := partOf(&blocks[i], fmt.Sprintf("/prompt/%d", i))
		if err != nil {
			return nil, err
		}
		if part.Type == protocol.InputText && part.Text == "" {
			continue // editors send empty text along with attachments
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, invalidParams("/prompt", "is empty")
	}
	return parts, nil
}

// partOf converts one content block. Links become Markdown text, images and
// embedded files become attachments. Audio is rejected.
func partOf(b *sdk.ContentBlock, pointer string) (protocol.InputPart, error) {
	switch {
	case b.Text != nil && b.Text.Type == "text": // the SDK decodes unknown block types as text
		return protocol.InputPart{Type: protocol.InputText, Text: b.Text.Text}, nil
	case b.ResourceLink != nil:
		l := b.ResourceLink
		return protocol.InputPart{Type: protocol.InputText, Text: fmt.Sprintf("[%s](%s)", l.Name, l.Uri)}, nil
	case b.Image != nil && !strings.HasPrefix(b.Image.MimeType, "image/"):
		return protocol.InputPart{}, invalidParams(pointer+"/mimeType", "is not an image type")
	case b.Image != nil && b.Image.Data == "":
		return protocol.InputPart{}, invalidParams(pointer+"/data", "is empty")
	case b.Image != nil:
		name := ""
		if b.Image.Uri != nil {
			name = *b.Image.Uri
		}
		return attached(pointer+"/data", name, b.Image.MimeType, b.Image.Data)
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		text := b.Resource.Resource.TextResourceContents
		if text.Uri == "" { // the SDK decodes unknown resources as text
			return protocol.InputPart{}, invalidParams(pointer+"/resource/uri", "is required")
		}
		return textResource(text), nil
	case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
		blob := b.Resource.Resource.BlobResourceContents
		return attached(pointer+"/resource/blob", blob.Uri, cmp.Or(deref(blob.MimeType), "application/octet-stream"), blob.Blob)
	case b.Audio != nil:
		return protocol.InputPart{}, invalidParams(pointer, "is audio, which is not supported; see promptCapabilities")
	}
	return protocol.InputPart{}, invalidParams(pointer, "is an unknown content block")
}

// textResource attaches an embedded text file as text, whatever its type is, such
// as application/json: every model can read text.
func textResource(r *sdk.TextResourceContents) protocol.InputPart {
	kind := deref(r.MimeType)
	if !strings.HasPrefix(kind, "text/") {
		kind = "text/plain"
	}
	return protocol.InputPart{Type: protocol.InputAttachment, Attachment: &protocol.Attachment{Name: r.Uri, Type: kind, Data: []byte(r.Text)}}
}

// attached makes an attachment from base64 data. pointer is the JSON pointer of
// the data, for errors.
func attached(pointer, name, kind, encoded string) (protocol.InputPart, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return protocol.InputPart{}, invalidParams(pointer, "is not valid base64")
	}
	return protocol.InputPart{Type: protocol.InputAttachment, Attachment: &protocol.Attachment{Name: name, Type: kind, Data: data}}, nil
}

// deref returns the string, or an empty one for nil.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
