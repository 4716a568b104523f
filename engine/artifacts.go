package engine

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

const (
	maxUploads = 4 * (persistence.MaxBlob + uploadCost) // bytes of uploads that are not done
	uploadCost = 256 << 10                              // of these, that each takes beside its own
	uploadIdle = 10 * time.Minute                       // after which one may be forgotten
)

// Artifacts takes the artifacts that clients send in parts, and reads what is stored.
type Artifacts struct {
	store    *persistence.Store
	receipts *receipt.Flights
	commit   func(context.Context, protocol.SessionID, persistence.Commit) error // in a session
	uploads  uploads
}

// Read reads a part of an artifact, or of what a plugin keeps.
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

// Write takes a part of an upload, and stores the whole with the last one. A part that came before is taken again without effect.
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

// storeUpload commits an upload that is whole, and forgets it.
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

// uploads are artifacts of which not all parts have come. They are in memory: a client begins again after a restart.
type uploads struct {
	mu   sync.Mutex
	open map[string]*upload
	size int
}

type upload struct {
	data []byte
	last time.Time // zero: nothing of it is kept yet
}

// cost is by how much a part adds to its size.
func (o *upload) cost(p *protocol.ArtifactWriteParams) int {
	if o.last.IsZero() {
		return uploadCost + len(p.Bytes)
	}
	return len(p.Bytes)
}

// size is what it takes of maxUploads.
func (o *upload) size() int { return uploadCost + len(o.data) }

func uploadKey(p *protocol.ArtifactWriteParams) string {
	return string(p.SessionID) + "\n" + p.UploadID
}

// add is what has come of an upload, with a part.
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

// has tells whether a part is there already.
func (o *upload) has(p *protocol.ArtifactWriteParams) bool {
	if len(p.Bytes) == 0 || p.Offset > int64(len(o.data)) {
		return false
	}
	return bytes.HasPrefix(o.data[p.Offset:], p.Bytes)
}

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

// expire forgets uploads for which nothing has come for a while.
func (u *uploads) expire() {
	for key, one := range u.open {
		if time.Since(one.last) > uploadIdle {
			u.size -= one.size()
			delete(u.open, key)
		}
	}
}

func (u *uploads) forget(p *protocol.ArtifactWriteParams) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if one := u.open[uploadKey(p)]; one != nil {
		u.size -= one.size()
		delete(u.open, uploadKey(p))
	}
}
