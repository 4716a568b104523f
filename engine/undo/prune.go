package undo

import (
	"context"
	"maps"
	"slices"
	"time"

	"lashd/persistence"
)

// Shares of the copy budget. Needed copies may take five eighths; packs are rewritten when a
// quarter of them is garbage, which adds up to a third of that. New copies may take an eighth until
// the next tidying. The total stays within the budget unless one turn makes very many copies.
const (
	// tidyShare is the fraction of the budget in new copies that asks for a tidying.
	tidyShare = 8
	// packShare is the fraction of the budget at which a pack is full.
	packShare = 32
	// keepEighths is the part of the budget, in eighths, that needed copies may take.
	keepEighths = 5
)

// NeedsTidy reports whether many copies were made since the last tidying, and then resets the
// count. It returns true once for each eighth of the budget.
func (f *Files) NeedsTidy() bool {
	if f.grown.Add(f.shelf.Grown()) < f.cfg.Limits.Budget/tidyShare {
		return false
	}
	f.grown.Store(0)
	return true
}

// Tidy removes copies that no row refers to. If needed copies exceed their share of the budget, it
// also removes the oldest file points. It waits until no workspace is locked and blocks new locks
// while it runs. Errors are logged. The daemon runs one Tidy at a time.
func (f *Files) Tidy(ctx context.Context) {
	if f.cfg.Limits.Off || f.places.Acquire(ctx, maxUsers) != nil {
		return
	}
	defer f.places.Release(maxUsers)
	f.unloadIdle()
	err := f.prune(ctx, nil, nil)
	if err == nil {
		err = f.prunePoints(ctx)
	}
	if err == nil {
		err = f.tidyPacks(ctx)
	}
	if err != nil && ctx.Err() == nil {
		f.cfg.Log.Warn("cannot tidy file copies", "error", err)
	}
}

// prune deletes points and workspace indexes, with all rows that nothing else refers to. Loaded
// workspaces are exempt.
func (f *Files) prune(ctx context.Context, points []persistence.StoredPoint, indexes []int64) error {
	_, err := f.cfg.Store.Commit(ctx, &persistence.Commit{
		Files: persistence.FileCommit{Pruned: points}, Tidy: persistence.FileTidy{Indexes: indexes, Sweep: true, InUse: f.loaded()}, AtMs: time.Now().UnixMilli(),
	})
	return err
}

// loaded returns the roots of the workspaces in memory. They may know more than the store does.
func (f *Files) loaded() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.open))
}

// prunePoints removes the oldest points, eight at a time, until the copies fit their share of the
// budget. If that is not enough, it removes the indexes of unused workspaces.
func (f *Files) prunePoints(ctx context.Context) error {
	for {
		over, err := f.overBudget(ctx)
		if err != nil || !over {
			return err
		}
		oldest, err := f.cfg.Store.Files.OldestPoints(ctx, 8)
		if err != nil {
			return err
		}
		if len(oldest) == 0 {
			return f.pruneIndexes(ctx)
		}
		for i := range oldest {
			oldest[i].Unrestorable = "lashd removed its file copies to stay within the copy budget"
		}
		f.cfg.Log.Info("removed the oldest file points to free copy space", "points", len(oldest))
		if err := f.prune(ctx, oldest, nil); err != nil {
			return err
		}
	}
}

// overBudget reports whether the needed copies exceed their share of the budget.
func (f *Files) overBudget(ctx context.Context) (bool, error) {
	packs, err := f.cfg.Store.Files.CopyBytes(ctx)
	sum := int64(0)
	for _, n := range packs {
		sum += n
	}
	return sum > f.cfg.Limits.Budget/8*keepEighths, err
}

// pruneIndexes removes the indexes of workspaces that no session uses. The next scan of such a
// workspace takes as long as the first one.
func (f *Files) pruneIndexes(ctx context.Context) error {
	idle, err := f.cfg.Store.Files.IdleWorkspaces(ctx)
	if err != nil {
		return err
	}
	for _, root := range f.loaded() {
		maps.DeleteFunc(idle, func(_ int64, idle string) bool { return idle == root })
	}
	return f.prune(ctx, nil, slices.Collect(maps.Keys(idle)))
}

// tidyPacks deletes packs without needed copies, and rewrites packs of which less than three
// quarters is needed.
func (f *Files) tidyPacks(ctx context.Context) error {
	sizes, err := f.shelf.Packs()
	if err != nil {
		return err
	}
	used, err := f.cfg.Store.Files.CopyBytes(ctx)
	for pack, size := range sizes {
		if err == nil && used[pack] > 0 && used[pack] < size/4*3 {
			err = f.repack(ctx, pack)
			used[pack] = 0
		}
		if err == nil && used[pack] == 0 {
			err = f.shelf.Remove(pack)
		}
	}
	return err
}

// repack moves the needed copies of a pack to the current pack. A copy that cannot be read is lost,
// and an undo that needs it will fail.
func (f *Files) repack(ctx context.Context, pack string) error {
	copies, err := f.cfg.Store.Files.CopiesIn(ctx, pack)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(copies, 32) { // all copies of one part are in memory at once
		moved, damaged, err := f.shelf.Move(part)
		if err != nil {
			return err
		}
		if damaged != nil {
			f.cfg.Log.Error("file copies are damaged", "pack", pack, "error", damaged)
		}
		if _, err := f.cfg.Store.Commit(ctx, &persistence.Commit{Tidy: persistence.FileTidy{Moved: moved}, AtMs: time.Now().UnixMilli()}); err != nil {
			return err
		}
	}
	return nil
}
