package persistence

import (
	"context"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// MaxBlob is the size limit of an artifact.
const MaxBlob = 64 << 20

// inlineBlob is the size up to which a blob stands in the database. Files are faster above about 1 MiB (measured: 2x at
// 1 MiB, 6x at 64 MiB); below it, a row saves the two fsyncs of a file and its directory.
const inlineBlob = 1 << 20

// PrepareBlob makes bytes ready for a commit: large ones are written to a file and synced first, so that a row never
// names a file that is not there. Such a file waits an hour for the commit that refers to it; then it is garbage.
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

// Blob reads bytes by their digest and verifies them. Unknown digests are ErrNotFound, wrong bytes ErrCorrupt.
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

// BlobRange reads a part of a blob, and tells the size of the whole. A blob in a row is verified each time, one in a file when it is read
// first, and again when its file has changed. Unknown digests are ErrNotFound, wrong bytes ErrCorrupt.
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

func otherBytes(d protocol.Digest) error {
	return fmt.Errorf("blob %s has other bytes: %w", d, ErrCorrupt)
}

// nonNil tells an empty body from none: SQLite reads an empty one back as nil.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
