package undo

import (
	"context"
	"maps"
	"slices"
	"time"

	"lashd/persistence"
)

// Copies that are needed take up to five eighths of the budget, and with those that are not needed any more up to a third more than that.
// New copies may take an eighth until the next tidying: so copies stay within the budget, unless one turn makes very many.
const (
	tidyShare   = 8
	packShare   = 32
	keepEighths = 5
)

// NeedsTidy tells whether there are many new copies since the last tidying. It says so once.
func (f *Files) NeedsTidy() bool {
	if f.grown.Add(f.shelf.Grown()) < f.cfg.Limits.Budget/tidyShare {
		return false
	}
	f.grown.Store(0)
	return true
}

// Tidy removes copies that nothing needs any more, and the oldest file points if the copies that are needed exceed the budget. It waits
// until no workspace is locked, and none is locked meanwhile.
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
		f.cfg.Log.Warn("copies of files are not tidied up", "error", err)
	}
}

// prune removes points and what is known of workspaces, with all rows that only these needed.
func (f *Files) prune(ctx context.Context, points []persistence.StoredPoint, indexes []int64) error {
	_, err := f.cfg.Store.Commit(ctx, &persistence.Commit{
		Files: persistence.FileCommit{Pruned: points}, Tidy: persistence.FileTidy{Indexes: indexes, Sweep: true, InUse: f.loaded()}, AtMs: time.Now().UnixMilli(),
	})
	return err
}

// loaded are the workspaces of which more may be known than is stored.
func (f *Files) loaded() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.open))
}

// prunePoints removes the oldest points, and then what is known of workspaces without points, until the copies fit into the budget.
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
			oldest[i].Unrestorable = "it is older than there is room for copies"
		}
		f.cfg.Log.Info("file points are pruned", "points", len(oldest))
		if err := f.prune(ctx, oldest, nil); err != nil {
			return err
		}
	}
}

func (f *Files) overBudget(ctx context.Context) (bool, error) {
	packs, err := f.cfg.Store.Files.CopyBytes(ctx)
	sum := int64(0)
	for _, n := range packs {
		sum += n
	}
	return sum > f.cfg.Limits.Budget/8*keepEighths, err
}

// pruneIndexes removes what is known of workspaces that nobody uses. The next look at one takes as long as the first.
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

// tidyPacks removes packs without copies that are needed, and rewrites packs with few.
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

// repack moves the needed copies of a pack into another one. A copy that cannot be read is lost; an undo that needs it fails.
func (f *Files) repack(ctx context.Context, pack string) error {
	copies, err := f.cfg.Store.Files.CopiesIn(ctx, pack)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(copies, 32) { // they are in memory at once
		moved, damaged, err := f.shelf.Move(part)
		if err != nil {
			return err
		}
		if damaged != nil {
			f.cfg.Log.Error("copies of files are damaged", "pack", pack, "error", damaged)
		}
		if _, err := f.cfg.Store.Commit(ctx, &persistence.Commit{Tidy: persistence.FileTidy{Moved: moved}, AtMs: time.Now().UnixMilli()}); err != nil {
			return err
		}
	}
	return nil
}
