package persistence

import (
	"context"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// MaxBlob is the maximum size of an artifact, in bytes.
const MaxBlob = 64 << 20

// inlineBlob is the largest blob, in bytes, that is stored in the database. Files are faster above
// about 1 MiB (measured: 2 times at 1 MiB, 6 times at 64 MiB). Below it, a row saves the two fsyncs
// of a file and its directory.
const inlineBlob = 1 << 20

// PrepareBlob makes a Blob for a commit. It writes large content to a synced file first, so that no
// row ever names a missing file. If no commit refers to the file within an hour, a sweep removes
// it. Data over MaxBlob is ErrBudget.
func (w *writer) PrepareBlob(data []byte) (Blob, error) {
	if len(data) > MaxBlob {
		return Blob{}, fmt.Errorf("artifact of %d bytes, at most %d: %w", len(data), MaxBlob, ErrBudget)
	}
	b := Blob{Digest: protocol.DigestOf(data), Size: int64(len(data)), Body: nonNil(data)}
	if len(data) <= inlineBlob {
		return b, nil
	}
	b.Body = nil
	return b, w.blobs.put(b.Digest, data)
}

// Blob reads a blob and verifies its bytes. An unknown digest is ErrNotFound, wrong bytes are
// ErrCorrupt. The result is never nil.
func (r *Reader) Blob(ctx context.Context, d protocol.Digest) ([]byte, error) {
	var body []byte
	var inFile bool
	err := r.pool.row(ctx, "SELECT body, body IS NULL FROM blobs WHERE digest = ?", []any{d}, &body, &inFile)
	if err == nil && inFile {
		body, err = r.blobs.read(d)
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", d, err)
	}
	if protocol.DigestOf(body) != d {
		return nil, otherBytes(d)
	}
	return nonNil(body), nil
}

// BlobRange reads up to limit bytes from offset, and returns the size of the whole blob. A blob in
// a row is verified on each read. One in a file is verified on the first read and again after the
// file has changed. An unknown digest is ErrNotFound, wrong bytes are ErrCorrupt.
func (r *Reader) BlobRange(ctx context.Context, d protocol.Digest, offset, limit int64) (part []byte, size int64, err error) {
	var inFile bool
	var body []byte
	err = r.pool.row(ctx, "SELECT body, size, body IS NULL FROM blobs WHERE digest = ?", []any{d}, &body, &size, &inFile)
	if errors.Is(err, ErrNotFound) {
		return nil, 0, &NotFoundError{What: "artifact", ID: string(d)}
	}
	switch {
	case err != nil:
	case inFile:
		part, err = r.blobs.readRange(d, offset, limit)
	case protocol.DigestOf(body) != d:
		err = otherBytes(d)
	default:
		from := min(offset, int64(len(body)))
		part = body[from : from+min(limit, int64(len(body))-from)]
	}
	return nonNil(part), size, err
}

// otherBytes returns the error of a blob whose content has changed.
func otherBytes(d protocol.Digest) error {
	return fmt.Errorf("blob %s does not match its digest: %w", d, ErrCorrupt)
}

// nonNil returns an empty slice for nil. SQLite returns an empty body as nil, and stores nil as
// NULL.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// SessionBlob reads a blob that a session refers to as an artifact, and verifies its bytes. A digest that is
// unknown or of another session is a *NotFoundError, a blob larger than limit is ErrBudget.
func (r *Reader) SessionBlob(ctx context.Context, session int64, d protocol.Digest, limit int64) ([]byte, error) {
	var size int64
	err := r.pool.row(ctx, "SELECT b.size FROM blob_refs r JOIN blobs b USING (digest) WHERE r.session = ? AND r.digest = ?", []any{session, d}, &size)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, &NotFoundError{What: "artifact", ID: string(d)}
	case err != nil:
		return nil, err
	case size > limit:
		return nil, fmt.Errorf("artifact %s has %d bytes, at most %d: %w", d, size, limit, ErrBudget)
	}
	return r.Blob(ctx, d)
}
