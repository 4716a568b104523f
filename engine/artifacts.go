package engine

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

const (
	maxChunk   = 1 << 20                                // of an artifact, in a request or an answer
	maxUploads = 4 * (persistence.MaxBlob + uploadCost) // bytes of uploads that are not done
	uploadCost = 256 << 10                              // of these, that each takes beside its own
	uploadIdle = 10 * time.Minute                       // after which one may be forgotten
)

// ReadArtifact reads a part of an artifact, or of what a plugin keeps.
func (e *Engine) ReadArtifact(ctx context.Context, p *protocol.ArtifactReadParams) (*protocol.ArtifactReadResult, error) {
	if err := checkDigest(p.Digest); err != nil {
		return nil, err
	}
	limit := p.Limit
	if limit == 0 {
		limit = maxChunk
	}
	if limit < 1 || limit > maxChunk {
		return nil, bad("/limit", "must be 1 to %d", maxChunk)
	}
	if p.Offset < 0 {
		return nil, bad("/offset", "must not be negative")
	}
	data, size, err := e.store.BlobRange(ctx, p.Digest, p.Offset, limit)
	return &protocol.ArtifactReadResult{Digest: p.Digest, Size: size, Offset: p.Offset, Bytes: data}, err
}

func checkDigest(d protocol.Digest) error {
	if len(d) != 64 || strings.Trim(string(d), "0123456789abcdef") != "" {
		return bad("/digest", "must be 64 hexadecimal digits")
	}
	return nil
}

// WriteArtifact takes a part of an upload, and stores the whole with the last one. A part that came before is taken again
// without effect.
func (e *Engine) WriteArtifact(ctx context.Context, p *protocol.ArtifactWriteParams) (*protocol.ArtifactWriteResult, error) {
	if err := checkUpload(p); err != nil {
		return nil, err
	}
	return single(ctx, e, "artifact/write", p.Key(), p, func(rc receipt) (*protocol.ArtifactWriteResult, error) {
		if _, err := e.store.Session(ctx, p.SessionID); err != nil {
			return nil, err
		}
		data, err := e.uploads.add(p)
		if err != nil {
			return nil, err
		}
		result := &protocol.ArtifactWriteResult{Received: int64(len(data))}
		if !p.Done {
			return result, nil
		}
		return result, e.storeUpload(ctx, p, data, result, rc)
	})
}

func checkUpload(p *protocol.ArtifactWriteParams) error {
	switch {
	case p.UploadID == "":
		return bad("/uploadId", "must not be empty")
	case p.Offset < 0:
		return bad("/offset", "must not be negative")
	case len(p.Bytes) > maxChunk:
		return bad("/bytes", "has %d bytes, at most %d", len(p.Bytes), maxChunk)
	case p.Digest != "" && !p.Done:
		return bad("/digest", "comes with the last part")
	case p.Digest != "":
		return checkDigest(p.Digest)
	}
	return checkName("/uploadId", p.UploadID)
}

// storeUpload commits an upload that is whole, and forgets it.
func (e *Engine) storeUpload(ctx context.Context, p *protocol.ArtifactWriteParams, data []byte, result *protocol.ArtifactWriteResult, rc receipt) error {
	if p.Digest != "" && protocol.DigestOf(data) != p.Digest {
		return bad("/digest", "is not that of the %d bytes that came", len(data))
	}
	blob, err := e.store.PrepareBlob(data)
	if err != nil {
		return err
	}
	result.Digest, result.Durable = blob.Digest, true
	_, err = do(context.WithoutCancel(ctx), e, p.SessionID, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commit(ctx, st.change(persistence.Commit{Blobs: []persistence.Blob{blob}, Receipt: rc.with(result)}))
	})
	if err == nil {
		e.uploads.forget(p)
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
		return bad("/offset", "must be %d: so many bytes have come; parts of an upload that is not done are lost when the daemon ends", have)
	case have+len(p.Bytes) > persistence.MaxBlob:
		return fmt.Errorf("artifact of more than %d bytes: %w", persistence.MaxBlob, persistence.ErrBudget)
	case u.size+one.cost(p) > maxUploads:
		return fmt.Errorf("uploads that are not done take more than %d bytes: %w", maxUploads, persistence.ErrBudget)
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
