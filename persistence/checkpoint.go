package persistence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lashd/rpc/protocol"
)

// Times and sizes of the writer's maintenance.
const (
	witnessDelay  = time.Second     // maximum delay between a commit and the witness
	idleAfter     = 2 * time.Second // time without commits after which the log is folded into the database
	sweepEvery    = 24 * time.Hour
	keepReceipts  = 30 * 24 * time.Hour // for receipts without a session; the others are deleted with their session
	walSoftLimit  = 4 << 20             // log size in bytes at which it is folded even while commits arrive; SQLite then reuses the file
	commitPages   = 32 << 10            // estimated log bytes of a small commit: 10 to 14 pages
	walHardLimit  = 64 << 20            // log size at which it is also truncated, which a reader may delay
	walAlarm      = 256 << 20           // log size at which a warning is logged
	freePageShare = 4                   // free pages go back to the file system when they exceed one fourth of all
)

// upkeep is the writer's maintenance: it folds the log into the database, updates the witness,
// returns free pages, and sweeps once a day. Its timer runs only while something is due, so an idle
// daemon does not wake up. It belongs to the goroutine of Run.
type upkeep struct {
	w         *writer
	timer     *time.Timer
	uncounted bool      // commits that the witness does not know
	unfolded  bool      // the log holds commits that are not folded
	erase     bool      // the log holds deleted data, so folding must truncate it
	log       int64     // estimated bytes in the log since the last fold
	last      time.Time // time of the newest commit
	swept     time.Time // time of the last sweep
	alarmed   bool      // the warning about a large log was logged
}

// newUpkeep starts the timer for the first sweep, which is due once the store has been idle.
func newUpkeep(w *writer) *upkeep {
	return &upkeep{w: w, timer: time.NewTimer(idleAfter), last: time.Now()}
}

// wrote notes a group that was written. Run calls it after each group.
func (k *upkeep) wrote(ctx context.Context, group []*request) {
	k.last = time.Now()
	for _, r := range group {
		k.erase = k.erase || r.change.Delete
	}
	if !k.uncounted {
		k.uncounted, k.unfolded = true, true
		k.timer.Reset(witnessDelay)
	}
	for _, r := range group {
		k.log += commitPages + 2*int64(r.size)
	}
	if k.log > walSoftLimit {
		k.log = 0
		k.foldBusy(ctx)
	}
}

// foldBusy folds the log while commits arrive, so that SQLite overwrites it from the start. It
// truncates a log over walHardLimit, which means that a reader has blocked that for long.
func (k *upkeep) foldBusy(ctx context.Context) {
	wal := fileSize(k.w.path + "-wal")
	if wal <= walHardLimit {
		k.alarmed = false
		k.w.fold(ctx, "PASSIVE")
		return
	}
	k.w.fold(ctx, "TRUNCATE")
	if wal > walAlarm && !k.alarmed {
		k.alarmed = true
		k.w.log.Warn("the write-ahead log is very large; a reader may be stuck", "bytes", wal)
	}
}

// tick does the maintenance that is due, and rearms the timer if more is pending.
func (k *upkeep) tick(ctx context.Context) {
	if k.w.stopped() != nil {
		return
	}
	if k.uncounted {
		k.w.count(context.WithoutCancel(ctx))
		k.uncounted = false
	}
	k.w.restoreBallast()
	idle := time.Since(k.last) >= idleAfter
	if idle && k.unfolded {
		k.w.fold(ctx, k.idleMode())
		k.unfolded, k.erase, k.log = k.w.shrink(ctx), false, 0 // the file shrinks when the log is folded again
	}
	if idle && time.Since(k.swept) > sweepEvery {
		k.sweep(ctx)
		k.swept = time.Now()
	}
	if k.unfolded || k.w.ballast.released.Load() || k.swept.IsZero() {
		k.timer.Reset(witnessDelay)
	}
}

// idleMode returns the checkpoint mode for an idle store. It normally keeps the log file, because
// overwriting it costs half of growing it (BenchmarkSync). After a deletion it truncates, so that
// the deleted data leaves the disk.
func (k *upkeep) idleMode() string {
	if k.erase {
		return "TRUNCATE"
	}
	return "PASSIVE"
}

// sweep deletes old receipts and unused blob files, and restores the ballast. Failures are logged
// and tried again at the next sweep.
func (k *upkeep) sweep(ctx context.Context) {
	w := k.w
	tx := &tx{stmts: w.stmts}
	err := w.failed(tx.exec(ctx, "DELETE FROM receipts WHERE session IS NULL AND at < ?", time.Now().Add(-keepReceipts).UnixMilli()))
	err = errors.Join(err, w.blobs.sweep(func(d protocol.Digest) (bool, error) { return w.hasBlob(ctx, d) }), w.ballast.restore())
	if err != nil {
		w.log.Warn("part of the store's maintenance failed", "error", err)
	}
}

// fold copies the log into the database with a checkpoint of the given mode, PASSIVE or TRUNCATE.
// It does not wait for readers, because commits would wait too. Folding while idle keeps its fsyncs
// out of turns. Errors are logged only.
func (w *writer) fold(ctx context.Context, mode string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	tx := &tx{stmts: w.stmts}
	var busy, pages, folded int
	checkpoint := func() error {
		return w.failed(tx.row(ctx, "PRAGMA wal_checkpoint("+mode+")", nil, &busy, &pages, &folded))
	}
	w.witness.beforeFold(mode)
	var err error
	if mode == "TRUNCATE" {
		err = withoutLockWait(ctx, tx, checkpoint)
	} else {
		err = checkpoint()
	}
	if err != nil && !errors.Is(err, ErrBusy) {
		w.log.Warn("checkpoint failed", "error", err)
	}
	w.witness.afterFold(err == nil && busy == 0 && folded == pages)
}

// foldNow folds the whole log and waits for readers if necessary. It fails with ErrBusy if pages
// remain.
func (w *writer) foldNow(ctx context.Context) error {
	tx := &tx{stmts: w.stmts}
	var busy, pages, folded int
	err := tx.row(ctx, "PRAGMA wal_checkpoint(FULL)", nil, &busy, &pages, &folded)
	if err == nil && (busy != 0 || folded < pages) {
		err = ErrBusy
	}
	return classify(err)
}

// withoutLockWait runs f with a busy timeout of zero, so that nothing in f waits for a lock. It restores
// the timeout afterwards, even if ctx is done.
func withoutLockWait(ctx context.Context, tx *tx, f func() error) error {
	if err := setBusyTimeout(ctx, tx, 0); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, setBusyTimeout(context.WithoutCancel(ctx), tx, busyTimeout))
}

// shrink frees up to 1000 pages for the file system if more than a fourth of all pages is free, and
// reports whether it did. The next fold returns them.
func (w *writer) shrink(ctx context.Context) (did bool) {
	tx := &tx{stmts: w.stmts}
	var free, all, left int
	err := errors.Join(
		tx.row(ctx, "PRAGMA freelist_count", nil, &free),
		tx.row(ctx, "PRAGMA page_count", nil, &all))
	if err == nil && free*freePageShare > all {
		_, err = w.stmts.conn.ExecContext(ctx, "PRAGMA incremental_vacuum(1000)")
		err = errors.Join(err, tx.row(ctx, "PRAGMA freelist_count", nil, &left))
		did = err == nil && left < free
	}
	if err = w.failed(err); err != nil {
		w.log.Warn("free pages not given back", "error", err)
	}
	return did
}

// setBusyTimeout sets how long the writer's connection waits for a lock, in milliseconds.
func setBusyTimeout(ctx context.Context, tx *tx, ms int) error {
	var now int
	return tx.row(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", ms), nil, &now)
}

// count adds the new commits to the count in the database and then to the witness. The witness
// comes second: it may be behind the database but never ahead of it.
func (w *writer) count(ctx context.Context) {
	tx := &tx{stmts: w.stmts}
	if w.uncounted > 0 {
		err := w.failed(tx.exec(ctx, "UPDATE meta SET value = CAST(CAST(value AS INTEGER) + ? AS TEXT) WHERE name = 'commits'", w.uncounted))
		if err != nil { // tried again later
			w.log.Warn("commits not counted", "error", err)
			return
		}
		w.meta.commits += w.uncounted
		w.uncounted = 0
	}
	w.witness.update(true, func(now *witnessed) { now.Commits = w.meta.commits })
}
