package persistence

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// Report is the result of Verify. Problems has one sentence per finding; it is empty for a sound
// store.
type Report struct {
	Sessions int      `json:"sessions"`
	Events   int      `json:"events"`
	Blobs    int      `json:"blobs"`
	Problems []string `json:"problems"`
}

// note adds damage (ErrCorrupt) to the report. It returns any other error, which ends the check.
func (r *Report) note(err error) error {
	if errors.Is(err, ErrCorrupt) {
		r.Problems = append(r.Problems, err.Error())
		return nil
	}
	return err
}

// Verify checks the whole store: the structure of the database, each session's log against its hash
// chain, its history up to the root, every row against its checksum, and the bytes of every blob.
// It reads page by page while the writer continues. progress is called after each session.
//
// Damage is in the report; an error means that the check could not be completed.
func (r *Reader) Verify(ctx context.Context, progress func(done, all int)) (Report, error) {
	structure := checkStructureOf(ctx, r.pool.db)
	report, err := verifyRows(ctx, r.pool, structure == nil, progress)
	if err = errors.Join(err, report.note(structure)); err != nil {
		return report, err
	}
	return report, verifyBlobs(ctx, r, &report)
}

// verifyRows checks all rows against their hash chains and checksums. sound says that the structure
// of the database is intact.
func verifyRows(ctx context.Context, db *readPool, sound bool, progress func(done, all int)) (Report, error) {
	r, err := verifyLogs(ctx, db, progress)
	if err != nil {
		return r, err
	}
	return r, verifySums(ctx, db, sound, &r)
}

// selectHeads reads the part of a session's row that verification needs.
const selectHeads = `SELECT session, session_id, branch, generation, seq, chain FROM sessions `

// scanHead scans a row of selectHeads.
func scanHead(rows *sql.Rows, h *head) error {
	return rows.Scan(&h.session, &h.id, &h.branch, &h.generation, &h.seq, &h.chain)
}

// verifyLogs checks the log and the history of each session.
func verifyLogs(ctx context.Context, db *readPool, progress func(done, all int)) (Report, error) {
	var r Report
	heads, err := list(ctx, db, scanHead, selectHeads)
	if err != nil {
		return r, err
	}
	r.Sessions = len(heads)
	for i, h := range heads {
		n, err := verifyLog(ctx, db, h)
		r.Events += n
		if err := r.note(err); err != nil {
			return r, err
		}
		if err := r.note(verifyHistory(ctx, db, h)); err != nil {
			return r, err
		}
		progress(i+1, len(heads))
	}
	return r, nil
}

// VerifyLog follows the hash chain of one session to its head, and returns the number of events. It fails with ErrCorrupt if an event was
// changed, added or removed.
func (r *Reader) VerifyLog(ctx context.Context, session int64) (int, error) {
	heads, err := list(ctx, r.pool, scanHead, selectHeads+"WHERE session = ?", session)
	if err != nil || len(heads) == 0 { // the session was deleted
		return 0, err
	}
	return verifyLog(ctx, r.pool, heads[0])
}

// verifyLog follows the hash chain of a session to its head, and returns the number of events. The
// writer may append in between: at the end of the log verifyLog reads the head again. An event
// whose number is too high is read again with the next page, where it breaks the chain.
func verifyLog(ctx context.Context, db *readPool, h head) (int, error) {
	chain, seq := make([]byte, 32), protocol.Seq(0)
	broken := func() error {
		return fmt.Errorf("session %s: the log is broken at event %d of %d: %w", h.id, seq, h.seq, ErrCorrupt)
	}
	for {
		page, err := db.events(ctx, h.session, seq, eventPage)
		if err != nil {
			return int(seq), err
		}
		for _, e := range page {
			seq++
			chain = chainLink(chain, h.id, seq, Event{Type: e.Type, Body: e.Body})
			if !bytes.Equal(chain, e.chain) {
				return int(seq), broken()
			}
		}
		if len(page) > 0 {
			continue
		}
		now, err := list(ctx, db, scanHead, selectHeads+"WHERE session = ?", h.session)
		if err != nil || len(now) == 0 { // the session was deleted in between
			return int(seq), err
		}
		h = now[0]
		if seq == h.seq && bytes.Equal(chain, h.chain) {
			return int(seq), nil
		}
		if more, err := db.events(ctx, h.session, seq, 1); err != nil || len(more) == 0 {
			return int(seq), errors.Join(err, broken())
		}
	}
}

// countNodes counts the nodes between two places of a branch.
const countNodes = `SELECT count(*) FROM nodes WHERE place > ? AND place <= ?`

// verifyHistory checks that every generation from the root to the leaf has a node.
func verifyHistory(ctx context.Context, db *readPool, h head) error {
	branch, generation := h.branch, h.generation
	for {
		var parent, upTo sql.NullInt64
		err := db.row(ctx, parentOf, []any{branch}, &parent, &upTo)
		if errors.Is(err, ErrNotFound) {
			return unlessDeleted(ctx, db, h, fmt.Errorf("session %s: branch %d is missing: %w", h.id, branch, ErrCorrupt))
		}
		if err != nil {
			return err
		}
		first := int64(-1)
		if parent.Valid {
			first = upTo.Int64
		}
		var n int64
		if err := db.row(ctx, countNodes, []any{place(branch, 0) + first, place(branch, generation)}, &n); err != nil {
			return err
		}
		if n != generation-first && (generation > 0 || parent.Valid) { // a session may have no node yet
			return unlessDeleted(ctx, db, h, fmt.Errorf("session %s: nodes are missing from branch %d: %w", h.id, branch, ErrCorrupt))
		}
		if !parent.Valid {
			return nil
		}
		if parent.Int64 >= branch {
			return unlessDeleted(ctx, db, h, wrongParent(branch, parent.Int64))
		}
		branch, generation = parent.Int64, upTo.Int64
	}
}

// unlessDeleted returns the problem, or nil if its session was deleted in between.
func unlessDeleted(ctx context.Context, db *readPool, h head, problem error) error {
	now, err := list(ctx, db, scanHead, selectHeads+"WHERE session = ?", h.session)
	if err != nil || len(now) == 0 {
		return err
	}
	return problem
}

// verifyBlobs checks the bytes of every blob.
func verifyBlobs(ctx context.Context, db *Reader, r *Report) error {
	digests, err := list(ctx, db.pool, scanDigest, "SELECT digest FROM blobs ORDER BY digest")
	if err != nil {
		return err
	}
	r.Blobs = len(digests)
	for _, d := range digests {
		err := verifyBlob(ctx, db, d)
		if errors.Is(err, ErrCorrupt) && errors.Is(db.pool.row(ctx, "SELECT 1 FROM blobs WHERE digest = ?", []any{d}, new(int)), ErrNotFound) {
			continue // deleted between reading its row and its file
		}
		if errors.Is(err, ErrNotFound) {
			continue // deleted since the list was read
		}
		if err := r.note(err); err != nil {
			return err
		}
	}
	return nil
}

// verifyBlob checks a blob's bytes against its digest and their number against its row.
func verifyBlob(ctx context.Context, db *Reader, d protocol.Digest) error {
	data, err := db.Blob(ctx, d)
	if err != nil {
		return err
	}
	var size int64
	if err := db.pool.row(ctx, "SELECT size FROM blobs WHERE digest = ?", []any{d}, &size); err != nil {
		return err
	}
	if size != int64(len(data)) {
		return fmt.Errorf("blob %s has %d bytes, but its row says %d: %w", d, len(data), size, ErrCorrupt)
	}
	return nil
}

// wrongParent returns the error of a branch that continues from itself or from a newer branch.
// Following it could loop forever.
func wrongParent(branch, parent int64) error {
	return fmt.Errorf("branch %d continues from branch %d, which is not older: %w", branch, parent, ErrCorrupt)
}
