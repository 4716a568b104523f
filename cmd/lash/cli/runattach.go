package cli

import (
	"context"
	"fmt"

	"lashd/engine/attachment"
	"lashd/engine/param"
	"lashd/rpc/protocol"
)

// readAttachments reads the files of --attach. It fails before the daemon is asked if a file is of a
// kind that no model reads, or if the files are too many or too large.
func readAttachments(paths []string) ([]*protocol.Attachment, error) {
	if len(paths) > attachment.MaxCount {
		return nil, fmt.Errorf("cannot attach %d files; the limit is %d", len(paths), attachment.MaxCount)
	}
	var files []*protocol.Attachment
	left := int64(attachment.MaxTotal)
	for _, path := range paths {
		file, err := attachment.ReadFile(path, left)
		if err != nil {
			return nil, fmt.Errorf("cannot attach a file: %w", err)
		}
		left -= int64(len(file.Data))
		files = append(files, file)
	}
	return files, nil
}

// input returns the parts of the input: the prompt and the attachments. It uploads large attachments to
// the session first. A repetition after a lost connection uploads them again, which changes nothing.
func (t *turnRun) input(ctx context.Context) ([]protocol.InputPart, error) {
	parts := []protocol.InputPart{{Type: protocol.InputText, Text: t.prompt}}
	for i, file := range t.files {
		sent := *file
		if len(file.Data) > attachment.Inline {
			digest, err := t.upload(ctx, fmt.Sprintf("%s-%d", t.key, i), file.Data)
			if err != nil {
				return nil, err
			}
			sent.Data, sent.Digest = nil, digest
		}
		parts = append(parts, protocol.InputPart{Type: protocol.InputAttachment, Attachment: &sent})
	}
	return parts, nil
}

// upload stores contents as an artifact of the session and returns their digest.
func (t *turnRun) upload(ctx context.Context, id string, data []byte) (protocol.Digest, error) {
	for at := 0; ; {
		n := min(param.MaxChunk, len(data)-at)
		var r protocol.ArtifactWriteResult
		p := protocol.ArtifactWriteParams{SessionID: t.session, UploadID: id, Offset: int64(at), Bytes: data[at : at+n], Done: at+n == len(data)}
		if err := t.call(ctx, "artifact/write", p, &r); err != nil {
			return "", err
		}
		if at += n; at == len(data) {
			return r.Digest, nil
		}
	}
}
