package persistence

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// head is a session's row while a commit is applied to it. The apply functions read and update it
// in memory; saveHead writes it once at the end. Its position is branch and generation, where leaf
// is; its log ends at seq with the hash chain.
type head struct {
	session    int64 // row number
	id         protocol.SessionID
	revision   int64
	branch     int64
	generation int64
	leaf       protocol.NodeID
	frame      protocol.FrameID // of the leaf
	seq        protocol.Seq
	chain      []byte
	moved      bool // the leaf or the configuration changed

	// turn is the open turn that was written last, or empty if unknown. Most commits are fenced by
	// it, so checkFence need not read its row.
	turn        protocol.TurnID
	incarnation string // of the daemon that drives turn
}

// apply makes one commit in the open transaction. It checks the receipt first, then the session,
// the required ancestor and the fence. A replayed receipt therefore succeeds even if the session
// has changed since or is deleted.
//
// On error the caller must roll back: some rows may already be written.
func apply(ctx context.Context, t *tx, c *change) (Result, error) {
	if stored, hit, err := findReceipt(ctx, t, c.Receipt); hit || err != nil {
		return Result{Replayed: hit, Stored: stored}, err
	}
	h, err := openHead(ctx, t, c)
	if err != nil {
		return Result{}, err
	}
	if h == nil { // a change of the store, not of a session
		return Result{}, applyGlobal(ctx, t, c)
	}
	if err := checkFence(ctx, t, c, h); err != nil {
		return Result{}, err
	}
	nodes, err := applyHistory(ctx, t, c, h)
	if err != nil {
		return Result{}, err
	}
	first, err := takeFirst(ctx, t, c, h)
	if err != nil {
		return Result{}, err
	}
	if err := applyRows(ctx, t, c, h); err != nil {
		return Result{}, err
	}
	if c.Delete {
		t.heads.forget(c.Session)
		if err := deleteSession(ctx, t, h, c.AtMs); err != nil {
			return Result{}, err
		}
		return Result{}, saveReceipt(ctx, t, c, nil) // a retry must find the receipt although the session is gone
	}
	if err := saveHead(ctx, t, c, h); err != nil {
		return Result{}, err
	}
	if err := saveReceipt(ctx, t, c, h); err != nil {
		return Result{}, err
	}
	t.heads.put(h)
	t.touched = append(t.touched, touched{h.session, h.branch})
	return Result{Head: h.public(), Seq: h.seq, Nodes: nodes, First: first}, nil
}

// public returns the head as clients see it.
func (h *head) public() protocol.Head {
	return protocol.Head{Revision: h.revision, Leaf: h.leaf, Generation: h.generation, Frame: h.frame}
}

// applyGlobal applies a commit without a session: facts, triggers, file indexes and receipts.
func applyGlobal(ctx context.Context, t *tx, c *change) error {
	if err := applyLasting(ctx, t, c); err != nil {
		return err
	}
	if err := applyFiles(ctx, t, c, nil); err != nil {
		return err
	}
	if c.Forget != "" {
		return t.exec(ctx, "DELETE FROM receipts WHERE key = ? AND result = x''", c.Forget)
	}
	return saveReceipt(ctx, t, c, nil)
}

// selectReceipt reads a receipt. result is NULL if it was removed with its session; an empty result
// marks a request that has only begun.
const selectReceipt = `
SELECT hash, result, result IS NULL, intact(receipts r)
FROM receipts r
WHERE key = ?`

// checkReceipt reports why a stored receipt cannot serve a request: its hash differs
// (ErrReceiptConflict), or its result was removed with its session (ErrDeleted). Nil: it can.
func checkReceipt(known, hash []byte, gone bool) error {
	switch {
	case !bytes.Equal(known, hash):
		return ErrReceiptConflict
	case gone:
		return ErrDeleted
	}
	return nil
}

// findReceipt looks for the result that is stored under the receipt's key. hit is false if there is
// none, or if the stored receipt only records a begun request and r has a result.
func findReceipt(ctx context.Context, t *tx, r *Receipt) (stored []byte, hit bool, err error) {
	if r == nil {
		return nil, false, nil
	}
	var hash []byte
	var gone, intact bool
	err = t.row(ctx, selectReceipt, []any{r.Key}, &hash, &stored, &gone, &intact)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err == nil {
		err = rowIntact(intact, "receipts", r.Key, "")
	}
	if err == nil {
		err = checkReceipt(hash, r.Hash, gone)
	}
	begun := len(stored) == 0 && (len(r.Result) > 0 || r.ResultAt != nil)
	return stored, err == nil && !begun, err
}

// insertReceipt replaces only a receipt that records a begun request (its result is empty).
const insertReceipt = `
INSERT INTO receipts (key, session, hash, result, at)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE
SET session = excluded.session, result = excluded.result, at = excluded.at
WHERE result = x''`

// saveReceipt stores the receipt of a commit. h is nil if the commit has no session or deletes it;
// the receipt then belongs to no session.
func saveReceipt(ctx context.Context, t *tx, c *change, h *head) error {
	if c.Receipt == nil {
		return nil
	}
	var session any
	result := c.Receipt.Result
	if h != nil {
		session = h.session
		if c.Receipt.ResultAt != nil {
			result = c.Receipt.ResultAt(h.public())
		}
	}
	return t.exec(ctx, insertReceipt, c.Receipt.Key, session, nonNil(c.Receipt.Hash), nonNil(result), c.AtMs)
}

// selectHead reads the part of a session's row that a commit may change.
const selectHead = `
SELECT session, revision, branch, generation, leaf, frame, seq, chain, intact(sessions s)
FROM sessions s
WHERE session_id = ?`

// openHead returns the head of the commit's session, which it creates if the commit says so. It
// returns nil for a commit without a session.
func openHead(ctx context.Context, t *tx, c *change) (*head, error) {
	if c.Session == "" {
		return nil, nil
	}
	if c.Create != nil {
		return createSession(ctx, t, c)
	}
	if h, known := t.heads.get(c.Session); known {
		return h, nil
	}
	return readHead(ctx, t, c.Session)
}

// readHead reads the head of a session from its row and verifies the row's checksum.
func readHead(ctx context.Context, t *tx, id protocol.SessionID) (*head, error) {
	h := &head{id: id}
	var intact bool
	err := t.row(ctx, selectHead, []any{id},
		&h.session, &h.revision, &h.branch, &h.generation, &h.leaf, &h.frame, &h.seq, &h.chain, &intact)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missingSession(ctx, t, id)
	}
	if err == nil {
		err = rowIntact(intact, "sessions", h.session, id)
	}
	return h, err
}

// missingSession returns ErrDeleted for the id of a deleted session, else a NotFoundError.
func missingSession(ctx context.Context, t *tx, id protocol.SessionID) error {
	var n int
	err := t.row(ctx, "SELECT 1 FROM deleted_sessions WHERE session_id = ?", []any{id}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return &NotFoundError{What: "session", ID: string(id)}
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("session %s: %w", id, ErrDeleted)
}

// openTurnOf repeats the condition of the index turns_open, so that SQLite uses it.
const openTurnOf = `
SELECT incarnation
FROM turns
WHERE turn_id = ? AND session = ? AND (state = 'queued' OR state = 'running' OR state = 'waiting')`

// checkFence compares the stored session with Requires and Fence of the commit.
func checkFence(ctx context.Context, t *tx, c *change, h *head) error {
	if c.Requires != "" {
		if _, err := onPath(ctx, t, h.branch, h.generation, c.Requires); err != nil {
			if errors.Is(err, ErrNotFound) {
				return &StaleBranchError{Leaf: h.leaf}
			}
			return err
		}
	}
	if c.Fence.Revision != nil && *c.Fence.Revision != h.revision {
		return fmt.Errorf("head revision is %d, not %d: %w", h.revision, *c.Fence.Revision, ErrFenced)
	}
	if c.Fence.Seq != nil && *c.Fence.Seq != h.seq {
		return fmt.Errorf("newest event is %d, not %d: %w", h.seq, *c.Fence.Seq, ErrFenced)
	}
	if c.Fence.Turn == "" {
		return nil
	}
	incarnation, err := h.incarnation, error(nil)
	if h.turn != c.Fence.Turn {
		err = t.row(ctx, openTurnOf, []any{c.Fence.Turn, h.session}, &incarnation)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("turn %s is not open: %w", c.Fence.Turn, ErrFenced)
	}
	if err == nil && incarnation != c.Fence.Incarnation {
		return fmt.Errorf("turn %s is driven by another daemon: %w", c.Fence.Turn, ErrFenced)
	}
	return err
}

// updateHead leaves config and usage unchanged where the argument is NULL. updated_at never goes
// back.
const updateHead = `
UPDATE sessions
SET revision = ?, branch = ?, generation = ?, leaf = ?, frame = ?, seq = ?, chain = ?,
    turn_index = turn_index + ?, updated_at = max(updated_at, ?), config = coalesce(?, config), usage = coalesce(?, usage)
WHERE session = ?`

// saveHead writes the row of the session. The revision grows by one if the leaf or the
// configuration changed.
func saveHead(ctx context.Context, t *tx, c *change, h *head) error {
	if h.moved {
		h.revision++
	}
	turned := 0
	if c.Turned {
		turned = 1
	}
	return t.exec(ctx, updateHead, h.revision, h.branch, h.generation, h.leaf, h.frame, h.seq, h.chain,
		turned, c.AtMs, c.config, c.total, h.session)
}
