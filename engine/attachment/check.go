package attachment

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// check checks the attachments of one request. It writes nothing before store.
type check struct {
	Policy
	Use
	root  string  // pointer to what has all the attachments
	count int     // attachments so far
	size  int64   // of all contents so far
	large []large // contents to store
}

// large is an attachment whose contents become a blob.
type large struct {
	to   *protocol.Attachment // gets the digest
	data []byte
}

// message returns a message with checked attachments. It is the same message if it has none.
func (c *check) message(ctx context.Context, pointer string, m *protocol.Message) (*protocol.Message, error) {
	if !hasFiles(m) {
		return m, nil
	}
	checked := *m
	checked.Parts = slices.Clone(m.Parts)
	for i := range checked.Parts {
		a := checked.Parts[i].Attachment
		if a == nil {
			continue
		}
		a, err := c.one(ctx, pointer+"/parts/"+strconv.Itoa(i)+"/attachment", a)
		if err != nil {
			return nil, err
		}
		checked.Parts[i].Attachment = a
	}
	return &checked, nil
}

// hasFiles reports whether a message has attachments.
func hasFiles(m *protocol.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p protocol.Part) bool { return p.Attachment != nil })
}

// one returns a copy of an attachment with its checked media type and its estimated tokens.
// The caller's attachment stays as it is. Text passes for every model, because a model gets it as text.
func (c *check) one(ctx context.Context, pointer string, a *protocol.Attachment) (*protocol.Attachment, error) {
	if c.count++; c.count > MaxCount {
		return nil, param.Bad(c.root, "has more than %d attachments", MaxCount)
	}
	if err := CheckForm(a); err != nil {
		return nil, param.Bad(pointer, "%v", err)
	}
	checked := *a
	checked.Tokens = 0
	if a.URL != "" {
		if c.DenyURLs {
			return nil, &URLsDeniedError{Pointer: pointer}
		}
		if err := CheckURL(a); err != nil {
			return nil, param.Bad(pointer+"/url", "%v", err)
		}
	} else if err := c.contents(ctx, pointer, &checked); err != nil {
		return nil, err
	}
	if c.Model != nil && !strings.HasPrefix(checked.Type, "text/") && !c.Model.Takes(checked.Type) {
		return nil, &UnsupportedError{Pointer: pointer, Type: checked.Type, Model: c.Model.ID}
	}
	return &checked, nil
}

// contents sets the media type that the contents show, and their tokens. It counts the contents towards MaxTotal, which includes
// contents that are stored already.
func (c *check) contents(ctx context.Context, pointer string, a *protocol.Attachment) (err error) {
	data, moved := a.Data, false
	if a.Digest != "" {
		if err := param.CheckDigest(a.Digest); err != nil {
			return param.Under(pointer, "", err)
		}
		if data, moved, err = c.stored(ctx, a.Digest); err != nil {
			return err
		}
	}
	if a.Type, err = Checked(a.Type, data); err != nil {
		return param.Bad(pointer, "%v", err)
	}
	a.Tokens = Tokens(a.Type, data)
	if c.size += int64(len(data)); c.size > MaxTotal {
		return param.Bad(c.root, "has attachments of more than %d bytes together", MaxTotal)
	}
	if moved || len(a.Data) > Inline && !c.Send {
		c.large = append(c.large, large{a, data})
	}
	return nil
}

// stored reads the contents of a digest, which one of the sessions must own. moved reports that it is not the first one.
func (c *check) stored(ctx context.Context, d protocol.Digest) (data []byte, moved bool, err error) {
	err = &persistence.NotFoundError{What: "artifact", ID: string(d)}
	for i, session := range c.Sessions {
		if session == 0 {
			continue
		}
		if data, err = c.Store.SessionBlob(ctx, session, d, MaxTotal); !errors.Is(err, persistence.ErrNotFound) {
			return data, i > 0, err
		}
	}
	return nil, false, err
}

// store replaces the data of large attachments by the digests of blobs.
func (c *check) store() (blobs []persistence.Blob, err error) {
	for _, l := range c.large {
		blob, err := c.Store.PrepareBlob(l.data)
		if err != nil {
			return nil, err
		}
		l.to.Data, l.to.Digest = nil, blob.Digest
		blobs = append(blobs, blob)
	}
	return blobs, nil
}
