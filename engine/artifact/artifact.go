// Package artifact serves the artifacts of sessions: uploads in parts, and reads in ranges.
package artifact

import (
	"context"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/upload"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Artifacts is the API of artifacts: clients upload them in parts and read stored ones in ranges.
// Its methods are safe for concurrent use.
type Artifacts struct {
	store    *persistence.Store
	receipts *receipt.Flights
	// commit stores a change on the actor of a session.
	commit  func(context.Context, protocol.SessionID, persistence.Commit) error
	uploads upload.Uploads
}

// New returns the API of the artifacts in a store. commit stores a change on the actor of a session.
func New(store *persistence.Store, receipts *receipt.Flights, commit func(context.Context, protocol.SessionID, persistence.Commit) error) *Artifacts {
	return &Artifacts{store: store, receipts: receipts, commit: commit, uploads: upload.Uploads{What: "artifact", Limit: persistence.MaxBlob, Many: 4}}
}

// Read returns up to limit bytes of a stored blob, starting at offset, and the size of the whole.
// The blob may be an artifact or one that a plugin stored. Limit defaults to param.MaxChunk.
func (a *Artifacts) Read(ctx context.Context, p *protocol.ArtifactReadParams) (*protocol.ArtifactReadResult, error) {
	if err := param.CheckDigest(p.Digest); err != nil {
		return nil, err
	}
	limit := p.Limit
	if limit == 0 {
		limit = param.MaxChunk
	}
	if limit < 1 || limit > param.MaxChunk {
		return nil, param.Bad("/limit", "must be 1 to %d", param.MaxChunk)
	}
	if p.Offset < 0 {
		return nil, param.Bad("/offset", "must not be negative")
	}
	data, size, err := a.store.BlobRange(ctx, p.Digest, p.Offset, limit)
	return &protocol.ArtifactReadResult{Digest: p.Digest, Size: size, Offset: p.Offset, Bytes: data}, err
}

// Write adds a part to an upload. The part with Done set completes it: Write then stores the
// artifact in the session and returns its digest. Sending a part twice has no effect, so a client
// may retry after a lost connection. Parts of unfinished uploads are lost when the daemon stops.
func (a *Artifacts) Write(ctx context.Context, p *protocol.ArtifactWriteParams) (*protocol.ArtifactWriteResult, error) {
	if err := param.CheckUpload(p); err != nil {
		return nil, err
	}
	return receipt.Once(ctx, a.receipts, "artifact/write", p.Key(), p, func(rc receipt.Request) (*protocol.ArtifactWriteResult, error) {
		if _, err := a.store.Session(ctx, p.SessionID); err != nil {
			return nil, err
		}
		data, err := a.uploads.Add(uploadKey(p), p.Offset, p.Bytes)
		if err != nil {
			return nil, err
		}
		result := &protocol.ArtifactWriteResult{Received: int64(len(data))}
		if !p.Done {
			return result, nil
		}
		return result, a.storeUpload(ctx, p, data, result, rc)
	})
}

// storeUpload checks the digest of a complete upload, commits it as a blob of the session, and then
// frees its memory. If the commit fails the upload stays, and the client can repeat its last part.
func (a *Artifacts) storeUpload(ctx context.Context, p *protocol.ArtifactWriteParams, data []byte, result *protocol.ArtifactWriteResult, rc receipt.Request) error {
	if p.Digest != "" && protocol.DigestOf(data) != p.Digest {
		return param.Bad("/digest", "does not match the %d bytes received", len(data))
	}
	blob, err := a.store.PrepareBlob(data)
	if err != nil {
		return err
	}
	result.Digest, result.Durable = blob.Digest, true
	err = a.commit(context.WithoutCancel(ctx), p.SessionID, persistence.Commit{Blobs: []persistence.Blob{blob}, Receipt: rc.With(result)})
	if err == nil {
		a.uploads.Forget(uploadKey(p))
	}
	return err
}

// uploadKey returns the key of an upload, whose id is unique only within its session.
func uploadKey(p *protocol.ArtifactWriteParams) string {
	return string(p.SessionID) + "\n" + p.UploadID
}
