package attachment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Input is a checked input whose large attachments refer to blobs. The commit that stores the input must store the blobs too.
type Input struct {
	Parts []protocol.InputPart // with checked media types; large contents replaced by digests
	Blobs []persistence.Blob   // of Parts, in the same order
}

// Policy says where contents are stored and which attachments are refused.
type Policy struct {
	Store    *persistence.Store // reads the session and the blobs that it owns
	DenyURLs bool               // refuse attachments by URL
}

// Prepare checks the parts and the attachments of an input for a session and prepares the large ones as blobs. It does not modify parts. It
// fails before it writes anything if an attachment is invalid, denied, unknown to the session, or of a kind that the session's
// model does not take.
// It reads the database on the caller's goroutine.
func (p Policy) Prepare(ctx context.Context, id protocol.SessionID, parts []protocol.InputPart) (Input, error) {
	in := Input{Parts: parts}
	if err := param.CheckInput(parts); err != nil {
		return in, err
	}
	if !slices.ContainsFunc(parts, func(p protocol.InputPart) bool { return p.Attachment != nil }) {
		return in, nil
	}
	row, err := p.Store.Session(ctx, id)
	if err != nil {
		return in, err
	}
	in.Parts = slices.Clone(parts)
	c := check{policy: p, session: row}
	for i := range in.Parts {
		if a := in.Parts[i].Attachment; a != nil {
			if in.Parts[i].Attachment, err = c.one(ctx, "/input/"+strconv.Itoa(i)+"/attachment", a); err != nil {
				return in, err
			}
		}
	}
	return in, in.store(p.Store)
}

// store replaces the data of large attachments by the digests of blobs.
func (in *Input) store(store *persistence.Store) error {
	for _, p := range in.Parts {
		a := p.Attachment
		if a == nil || len(a.Data) <= Inline {
			continue
		}
		blob, err := store.PrepareBlob(a.Data)
		if err != nil {
			return err
		}
		a.Data, a.Digest = nil, blob.Digest
		in.Blobs = append(in.Blobs, blob)
	}
	return nil
}

// check checks the attachments of one input.
type check struct {
	policy  Policy              // of the daemon
	session persistence.Session // whose model must take the attachments
	count   int                 // attachments so far
	size    int64               // of all contents so far
}

// one returns a copy of an attachment with its checked media type.
// The caller's attachment stays as it is. Text passes for every model, because a model gets it as text.
func (c *check) one(ctx context.Context, pointer string, a *protocol.Attachment) (*protocol.Attachment, error) {
	if c.count++; c.count > MaxCount {
		return nil, param.Bad("/input", "has more than %d attachments", MaxCount)
	}
	if err := CheckForm(a); err != nil {
		return nil, param.Bad(pointer, "%v", err)
	}
	checked := *a
	if a.URL != "" {
		if c.policy.DenyURLs {
			return nil, &URLsDeniedError{Pointer: pointer}
		}
		if err := CheckURL(a); err != nil {
			return nil, param.Bad(pointer+"/url", "%v", err)
		}
	} else if err := c.contents(ctx, pointer, &checked); err != nil {
		return nil, err
	}
	if m := c.session.Config.Model; !strings.HasPrefix(checked.Type, "text/") && !m.Takes(checked.Type) {
		return nil, &UnsupportedError{Pointer: pointer, Type: checked.Type, Model: m.ID}
	}
	return &checked, nil
}

// contents sets the media type that the contents show. It reads the contents of a digest from
// the store, where the session must own them.
// It also counts them towards MaxTotal, which includes contents that the session stores already.
func (c *check) contents(ctx context.Context, pointer string, a *protocol.Attachment) (err error) {
	data := a.Data
	if a.Digest != "" {
		if err := param.CheckDigest(a.Digest); err != nil {
			return param.Under(pointer, "", err)
		}
		if data, err = c.policy.Store.SessionBlob(ctx, c.session.Key, a.Digest, MaxTotal); err != nil {
			return err
		}
	}
	if a.Type, err = Checked(a.Type, data); err != nil {
		return param.Bad(pointer, "%v", err)
	}
	if c.size += int64(len(data)); c.size > MaxTotal {
		return param.Bad("/input", "has attachments of more than %d bytes together", MaxTotal)
	}
	return nil
}

// Reader returns the function with which a model call reads contents that a session stores by digest. Contents that are gone are
// nil; the model then gets a note instead.
// A database that cannot be read is an error, which fails the model call.
func Reader(ctx context.Context, store *persistence.Store, session int64) func(protocol.Digest) ([]byte, error) {
	return func(d protocol.Digest) ([]byte, error) {
		data, err := store.SessionBlob(ctx, session, d, MaxTotal)
		if errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrBudget) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read attachment %s: %w", d, err)
		}
		return data, nil
	}
}
