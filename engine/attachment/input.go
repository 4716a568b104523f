package attachment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Policy checks all attachments that enter the daemon: of inputs, of nodes that are added to history, of messages for a single model
// call, and of tool results. Its methods read the database on the caller's goroutine.
type Policy struct {
	Store    *persistence.Store // reads sessions and the blobs that they own
	DenyURLs bool               // refuse attachments by URL
}

// Use says for whom attachments are checked.
type Use struct {
	Model *protocol.ModelSpec // must take them; nil: any attachment passes, and a model that does not take it gets a note
	// Sessions are the keys of the sessions whose blobs a digest may name. The first one gets the attachments; blobs of the others
	// become its own. A key of 0 is a session that does not exist yet.
	Sessions []int64
	Pointer  string // of an input; "": /input
	Lenient  bool   // nodes may have attachments that Model does not take
	Send     bool   // the contents are only sent, so all data stays where it is; else large data becomes blobs
}

// Input is a checked input whose large attachments refer to blobs. The commit that stores the input must store the blobs too.
type Input struct {
	Parts []protocol.InputPart // with checked media types; large contents replaced by digests
	Blobs []persistence.Blob   // of Parts
}

// Prepare checks the parts and the attachments of an input for a session and prepares the large ones as blobs. It does not modify parts. It
// fails before it writes anything if an attachment is invalid, denied, unknown to the session, or of a kind that the session's
// model does not take.
func (p Policy) Prepare(ctx context.Context, id protocol.SessionID, parts []protocol.InputPart) (Input, error) {
	in := Input{Parts: parts}
	if err := param.CheckInput(parts); err != nil {
		return in, err
	}
	if !HasFiles(parts) {
		return in, nil
	}
	u, err := p.use(ctx, id)
	if err != nil {
		return in, err
	}
	return p.input(ctx, u, parts)
}

// HasFiles reports whether an input has attachments.
func HasFiles(parts []protocol.InputPart) bool {
	return slices.ContainsFunc(parts, func(p protocol.InputPart) bool { return p.Attachment != nil })
}

// Shown is Prepare for an input that is only shown: all data stays in it, and nothing has to be stored.
func (p Policy) Shown(ctx context.Context, id protocol.SessionID, parts []protocol.InputPart) (Input, error) {
	in := Input{Parts: parts}
	if err := param.CheckInput(parts); err != nil || !HasFiles(parts) {
		return in, err
	}
	u, err := p.use(ctx, id)
	if err != nil {
		return in, err
	}
	u.Send = true
	return p.input(ctx, u, parts)
}

// use returns how attachments of a session are used: its model takes them, and it owns their blobs.
func (p Policy) use(ctx context.Context, id protocol.SessionID) (Use, error) {
	row, err := p.Store.Session(ctx, id)
	return Use{Model: &row.Config.Model, Sessions: []int64{row.Key}}, err
}

// input checks the attachments of parts that passed param.CheckInput.
func (p Policy) input(ctx context.Context, u Use, parts []protocol.InputPart) (in Input, err error) {
	in.Parts = slices.Clone(parts)
	c := check{Policy: p, Use: u, root: cmp.Or(u.Pointer, "/input")}
	for i := range in.Parts {
		if a := in.Parts[i].Attachment; a != nil {
			if in.Parts[i].Attachment, err = c.one(ctx, c.root+"/"+strconv.Itoa(i)+"/attachment", a); err != nil {
				return in, err
			}
		}
	}
	in.Blobs, err = c.store()
	return in, err
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
