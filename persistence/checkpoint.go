package persistence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lashd/rpc/protocol"
)

const (
	witnessDelay  = time.Second     // after a commit, at most
	idleAfter     = 2 * time.Second // quiet time after which the log is folded into the database
	sweepEvery    = 24 * time.Hour
	keepReceipts  = 30 * 24 * time.Hour // of deleted sessions and of the store itself; the others go with their session
	walSoftLimit  = 4 << 20             // bytes of log that are folded in even while busy; writing begins anew after that
	commitPages   = 32 << 10            // bytes of log that a small commit takes, about: 10 to 14 pages
	walHardLimit  = 64 << 20            // ... and cut off, though a reader may make that wait
	walAlarm      = 256 << 20
	freePageShare = 4 // a quarter of the pages may be free before some are given back
)

// upkeep is what the writer does besides writing. Its timer runs only while something is due, so that an idle daemon
// does not wake.
type upkeep struct {
	w       *writer
	timer   *time.Timer
	unseen  bool  // by the witness
	unfold  bool  // the log holds commits that are not folded in
	erase   bool  // ... and what was deleted
	log     int64 // bytes that it has about, since it was folded in
	last    time.Time
	swept   time.Time
	alarmed bool
}

func newUpkeep(w *writer) *upkeep {
	return &upkeep{w: w, timer: time.NewTimer(idleAfter), last: time.Now()}
}

// wrote is called after each group.
func (k *upkeep) wrote(ctx context.Context, group []*request) {
	k.last = time.Now()
	for _, r := range group {
		k.erase = k.erase || r.change.Delete
	}
	if !k.unseen {
		k.unseen, k.unfold = true, true
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

// foldBusy folds the log in although there is work, so that it is written over from then on, or cut off if a reader kept
// it from that for long.
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
		k.w.log.Warn("the log of recent commits is very large: is a reader stuck?", "bytes", wal)
	}
}

func (k *upkeep) tick(ctx context.Context) {
	if k.w.stopped() != nil {
		return
	}
	if k.unseen {
		k.w.count(context.WithoutCancel(ctx))
		k.unseen = false
	}
	k.w.retakeBallast()
	idle := time.Since(k.last) >= idleAfter
	if idle && k.unfold {
		k.w.fold(ctx, k.idleMode())
		k.w.shrink(ctx)
		k.unfold, k.erase, k.log = false, false, 0
	}
	if idle && time.Since(k.swept) > sweepEvery {
		k.sweep(ctx)
		k.swept = time.Now()
	}
	if k.unfold || k.w.ballast.away.Load() || k.swept.IsZero() {
		k.timer.Reset(witnessDelay)
	}
}

// idleMode keeps the file of the log, since to write over it costs half of what it costs to make it grow (BenchmarkSync);
// but what was deleted is to leave the disk.
func (k *upkeep) idleMode() string {
	if k.erase {
		return "TRUNCATE"
	}
	return "PASSIVE"
}

// sweep makes room and keeps some back. What fails is tried again another day.
func (k *upkeep) sweep(ctx context.Context) {
	w := k.w
	tx := &tx{stmts: w.stmts}
	err := w.failed(tx.exec(ctx, "DELETE FROM receipts WHERE session IS NULL AND at < ?", time.Now().Add(-keepReceipts).UnixMilli()))
	err = errors.Join(err, w.blobs.sweep(func(d protocol.Digest) (bool, error) { return w.hasBlob(ctx, d) }), w.ballast.restore())
	if err != nil {
		w.log.Warn("upkeep of the store failed in part", "error", err)
	}
}

// fold copies the log into the database; TRUNCATE also empties it. Doing it while idle keeps its fsyncs out of turns. A
// reader that is in the way is not waited for: commits would wait too.
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
		err = unwaiting(ctx, tx, checkpoint)
	} else {
		err = checkpoint()
	}
	if err != nil && !errors.Is(err, ErrBusy) {
		w.log.Warn("checkpoint failed", "error", err)
	}
	w.witness.afterFold(err == nil && busy == 0 && folded == pages)
}

// foldNow folds all of the log in, also if readers have to be waited for.
func (w *writer) foldNow(ctx context.Context) error {
	tx := &tx{stmts: w.stmts}
	var busy, pages, folded int
	err := tx.row(ctx, "PRAGMA wal_checkpoint(FULL)", nil, &busy, &pages, &folded)
	if err == nil && (busy != 0 || folded < pages) {
		err = ErrBusy
	}
	return classify(err)
}

// unwaiting runs f while nothing is waited for that holds a lock. Afterwards it is again, also if ctx is done by then.
func unwaiting(ctx context.Context, tx *tx, f func() error) error {
	if err := setBusyTimeout(ctx, tx, 0); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, setBusyTimeout(context.WithoutCancel(ctx), tx, busyTimeout))
}

// shrink gives pages back to the file system, a few at a time.
func (w *writer) shrink(ctx context.Context) {
	tx := &tx{stmts: w.stmts}
	var free, all int
	err := errors.Join(
		tx.row(ctx, "PRAGMA freelist_count", nil, &free),
		tx.row(ctx, "PRAGMA page_count", nil, &all))
	if err == nil && free*freePageShare > all {
		_, err = w.stmts.conn.ExecContext(ctx, "PRAGMA incremental_vacuum(1000)")
	}
	if err = w.failed(err); err != nil {
		w.log.Warn("free pages not given back", "error", err)
	}
}

func setBusyTimeout(ctx context.Context, tx *tx, ms int) error {
	var now int
	return tx.row(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", ms), nil, &now)
}

// count has the database count what was committed since it last did, and then tells the witness.
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
