package imports

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"lashd/engine/attachment"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// files returns the history of a document with its attachments and artifacts. A document has large ones by their digest only. They come
// along if the store still has the session that the document was written from, and it has them. Text takes the place of all others;
// missing counts them.
//
// The id of a session is random, so a document from elsewhere cannot name a session here, and with it contents that the document's writer never had.
func (x *Imports) files(ctx context.Context, d *document) (h *History, missing int, err error) {
	f := &fileCheck{Policy: attachment.Policy{Store: x.store, DenyURLs: x.denyURLs}, known: map[protocol.Digest]bool{}}
	if f.sessions, err = x.original(ctx, d.source.ID); err != nil {
		return nil, 0, err
	}
	h = &History{Nodes: d.nodes, Turns: d.turns}
	for i := range h.Nodes {
		m := h.Nodes[i].Message
		if m == nil {
			continue
		}
		if err := f.replace(ctx, m); err != nil {
			return nil, 0, err
		}
		m, blobs, err := f.Imported(ctx, place(i)+"/message", m, f.sessions)
		if err != nil {
			return nil, 0, err
		}
		h.Nodes[i].Message, h.Blobs = m, append(h.Blobs, blobs...)
		more, err := f.outputs(ctx, place(i)+"/message/parts/", m)
		if err != nil {
			return nil, 0, err
		}
		h.Blobs = append(h.Blobs, more...)
	}
	return h, f.missing, nil
}

// original returns the keys of sessions for package attachment: the new one, and the original if the store has it.
func (x *Imports) original(ctx context.Context, id protocol.SessionID) ([]int64, error) {
	row, err := x.store.Session(ctx, id)
	switch {
	case errors.Is(err, persistence.ErrNotFound), errors.Is(err, persistence.ErrDeleted):
		return []int64{0}, nil
	case err != nil:
		return nil, err
	}
	return []int64{0, row.Key}, nil
}

// fileCheck checks the attachments and artifacts of a document.
type fileCheck struct {
	attachment.Policy
	sessions []int64
	known    map[protocol.Digest]bool
	missing  int
}

// has reports whether the original session has the contents of a digest.
func (f *fileCheck) has(ctx context.Context, d protocol.Digest) (bool, error) {
	if known, ok := f.known[d]; ok || len(f.sessions) < 2 {
		return known, nil
	}
	_, err := f.Store.SessionBlob(ctx, f.sessions[1], d, persistence.MaxBlob)
	if err != nil && !errors.Is(err, persistence.ErrNotFound) {
		return false, err
	}
	f.known[d] = err == nil
	return err == nil, nil
}

// replace replaces attachments of a message whose contents are missing by text.
func (f *fileCheck) replace(ctx context.Context, m *protocol.Message) error {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Attachment == nil || p.Attachment.Digest == "" {
			continue
		}
		has, err := f.has(ctx, p.Attachment.Digest)
		if err != nil {
			return err
		}
		if !has {
			f.missing++
			*p = protocol.Part{Kind: protocol.PartText, Text: absent(p.Attachment)}
		}
	}
	return nil
}

// absent is the text in place of an attachment.
func absent(a *protocol.Attachment) string {
	return fmt.Sprintf("[The file %q (%s) was not imported.]", a.Name, a.Type)
}

// outputs checks the attachments and artifacts of tool results, and returns the blobs that they refer to.
func (f *fileCheck) outputs(ctx context.Context, pointer string, m *protocol.Message) (blobs []persistence.Blob, err error) {
	for i := range m.Parts {
		r := m.Parts[i].Result
		if r == nil {
			continue
		}
		if err := f.artifact(ctx, &r.Output, &blobs); err != nil {
			return nil, err
		}
		files := r.Output.Attachments
		if len(files) == 0 {
			continue
		}
		shown := &protocol.Message{}
		for j := range files {
			shown.Parts = append(shown.Parts, protocol.Part{Kind: protocol.PartAttachment, Attachment: &files[j]})
		}
		if err := f.replace(ctx, shown); err != nil {
			return nil, err
		}
		checked, more, err := f.Imported(ctx, pointer+strconv.Itoa(i)+"/result/output", shown, f.sessions)
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, more...)
		r.Output.Attachments = nil
		for _, p := range checked.Parts {
			if p.Attachment != nil {
				r.Output.Attachments = append(r.Output.Attachments, *p.Attachment)
			} else {
				r.Output.Text += "\n" + p.Text
			}
		}
	}
	return blobs, nil
}

// artifact keeps the full output of a result if the original session has it.
func (f *fileCheck) artifact(ctx context.Context, out *protocol.ToolOutput, blobs *[]persistence.Blob) error {
	if out.Artifact == nil {
		return nil
	}
	has, err := f.has(ctx, out.Artifact.Digest)
	if err != nil {
		return err
	}
	if !has {
		f.missing++
		out.Artifact = nil
		return nil
	}
	*blobs = append(*blobs, persistence.Blob{Digest: out.Artifact.Digest, Size: out.Artifact.Size})
	return nil
}
