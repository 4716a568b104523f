// Package artifact serves the artifacts of sessions: uploads in parts, and reads in ranges.
package artifact

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Limits of uploads. They bound memory, since unfinished uploads are not stored.
const (
	// maxUploads limits the bytes of all unfinished uploads together.
	maxUploads = 4 * (persistence.MaxBlob + uploadCost)
	// uploadCost is what each upload counts beyond its bytes, which limits their number.
	uploadCost = 256 << 10
	// uploadIdle is how long an upload may wait for its next part before it can be dropped.
	uploadIdle = 10 * time.Minute
)

// Artifacts is the API of artifacts: clients upload them in parts and read stored ones in ranges.
// Its methods are safe for concurrent use.
type Artifacts struct {
	store    *persistence.Store
	receipts *receipt.Flights
	// commit stores a change on the actor of a session.
	commit  func(context.Context, protocol.SessionID, persistence.Commit) error
	uploads uploads
}

// New returns the API of the artifacts in a store. commit stores a change on the actor of a session.
func New(store *persistence.Store, receipts *receipt.Flights, commit func(context.Context, protocol.SessionID, persistence.Commit) error) *Artifacts {
	return &Artifacts{store: store, receipts: receipts, commit: commit}
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
		data, err := a.uploads.add(p)
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
		a.uploads.forget(p)
	}
	return err
}

// uploads holds the unfinished uploads of all sessions in memory. After a restart a client starts
// over.
type uploads struct {
	mu sync.Mutex
	// open maps uploadKey to the upload.
	open map[string]*upload
	// size is the cost of all uploads in open, including uploadCost for each.
	size int
}

// upload is one unfinished upload. uploads.mu guards it.
type upload struct {
	data []byte
	// last is when the newest part arrived; zero if the upload is not in the map yet.
	last time.Time
}

// cost returns how many bytes a part adds to uploads.size. The first part also pays uploadCost.
func (o *upload) cost(p *protocol.ArtifactWriteParams) int {
	if o.last.IsZero() {
		return uploadCost + len(p.Bytes)
	}
	return len(p.Bytes)
}

// size returns how many bytes the upload takes of maxUploads.
func (o *upload) size() int { return uploadCost + len(o.data) }

// uploadKey returns the key of an upload, whose id is unique only within its session.
func uploadKey(p *protocol.ArtifactWriteParams) string {
	return string(p.SessionID) + "\n" + p.UploadID
}

// add appends a part to its upload and returns all bytes so far. A part that was added before
// changes nothing. The caller must not modify the returned slice.
func (u *uploads) add(p *protocol.ArtifactWriteParams) ([]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expire()
	one := u.open[uploadKey(p)]
	if one == nil {
		one = &upload{}
	}
	if err := u.fits(one, p); err != nil {
		return nil, err
	}
	if one.has(p) {
		return one.data, nil
	}
	if u.open == nil {
		u.open = map[string]*upload{}
	}
	u.size += one.cost(p)
	u.open[uploadKey(p)] = one
	one.data, one.last = append(one.data, p.Bytes...), time.Now()
	return one.data, nil
}

// has reports whether the upload already contains the part, at its offset. An empty part never
// counts.
func (o *upload) has(p *protocol.ArtifactWriteParams) bool {
	if len(p.Bytes) == 0 || p.Offset > int64(len(o.data)) {
		return false
	}
	return bytes.HasPrefix(o.data[p.Offset:], p.Bytes)
}

// fits checks that a part continues its upload without a gap, and that the artifact and all uploads
// stay within their limits. A repeated part always fits.
func (u *uploads) fits(one *upload, p *protocol.ArtifactWriteParams) error {
	if one.has(p) {
		return nil
	}
	switch have := len(one.data); {
	case p.Offset != int64(have):
		return param.Bad("/offset", "must be %d, the number of bytes received so far; a restart of the daemon discards unfinished uploads", have)
	case have+len(p.Bytes) > persistence.MaxBlob:
		return fmt.Errorf("the artifact is larger than %d bytes: %w", persistence.MaxBlob, persistence.ErrBudget)
	case u.size+one.cost(p) > maxUploads:
		return fmt.Errorf("unfinished uploads take more than %d bytes; finish some, or wait ten minutes for idle ones to expire: %w", maxUploads, persistence.ErrBudget)
	}
	return nil
}

// expire drops uploads that received no part for uploadIdle. The caller holds u.mu.
func (u *uploads) expire() {
	for key, one := range u.open {
		if time.Since(one.last) > uploadIdle {
			u.size -= one.size()
			delete(u.open, key)
		}
	}
}

// forget drops an upload that was stored.
func (u *uploads) forget(p *protocol.ArtifactWriteParams) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if one := u.open[uploadKey(p)]; one != nil {
		u.size -= one.size()
		delete(u.open, uploadKey(p))
	}
}
