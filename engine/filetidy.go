package engine

import (
	"context"
	"maps"
	"slices"

	"lashd/persistence"
)

// What is kept takes five eighths of the budget at most, and with what is not needed any more a third more than that. New copies may take
// an eighth until somebody tidies up: so copies stay within the budget, unless one turn makes very many.
const (
	tidyShare   = 8
	packShare   = 32
	keepEighths = 5
)

// tidyGrown tidies up beside whoever calls it, if there are many new copies.
func (e *Engine) tidyGrown() {
	if e.files.grown.Add(e.files.shelf.Grown()) < e.Config.Files.Budget/tidyShare {
		return
	}
	e.files.grown.Store(0)
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx := e.ctx; ctx.Err() == nil {
		e.actors.Go(func() { e.tidyFiles(ctx) })
	}
}

// tidyFiles lets go of copies that nothing needs any more, and of the oldest file points if what is needed takes more than the
// budget. Nobody looks at files meanwhile.
func (e *Engine) tidyFiles(ctx context.Context) {
	if e.Config.Files.Off || e.files.places.Acquire(ctx, fileUsers) != nil {
		return
	}
	defer e.files.places.Release(fileUsers)
	e.files.forgetIdle()
	err := e.sweepFiles(ctx)
	if err == nil {
		err = e.pruneFiles(ctx)
	}
	if err == nil {
		err = e.tidyPacks(ctx)
	}
	if err != nil && ctx.Err() == nil {
		e.Log.Warn("copies of files are not tidied up", "error", err)
	}
}

func (e *Engine) sweepFiles(ctx context.Context) error { return e.letGo(ctx, nil, nil) }

// letGo prunes points and forgets what is known of workspaces, with all that only these needed.
func (e *Engine) letGo(ctx context.Context, points []persistence.StoredPoint, indexes []int64) error {
	_, err := e.store.Commit(ctx, &persistence.Commit{
		Files: persistence.FileCommit{Pruned: points}, Tidy: persistence.FileTidy{Indexes: indexes, Sweep: true, InUse: e.workspacesInUse()}, AtMs: now(),
	})
	return err
}

// workspacesInUse are those of which somebody may know more than is stored.
func (e *Engine) workspacesInUse() []string {
	e.files.mu.Lock()
	defer e.files.mu.Unlock()
	return slices.Collect(maps.Keys(e.files.open))
}

// pruneFiles lets the oldest points go, and then what is known of workspaces that have none, until copies fit into the budget.
func (e *Engine) pruneFiles(ctx context.Context) error {
	for {
		over, err := e.overBudget(ctx)
		if err != nil || !over {
			return err
		}
		oldest, err := e.store.OldestPoints(ctx, 8)
		if err != nil {
			return err
		}
		if len(oldest) == 0 {
			return e.pruneIndexes(ctx)
		}
		for i := range oldest {
			oldest[i].Unrestorable = "it is older than there is room for copies"
		}
		e.Log.Info("file points are pruned", "points", len(oldest))
		if err := e.letGo(ctx, oldest, nil); err != nil {
			return err
		}
	}
}

func (e *Engine) overBudget(ctx context.Context) (bool, error) {
	packs, err := e.store.CopyBytes(ctx)
	sum := int64(0)
	for _, n := range packs {
		sum += n
	}
	return sum > e.Config.Files.Budget/8*keepEighths, err
}

// pruneIndexes forgets the workspaces that nobody uses. The next look at one takes as long as the first.
func (e *Engine) pruneIndexes(ctx context.Context) error {
	idle, err := e.store.IdleWorkspaces(ctx)
	if err != nil {
		return err
	}
	for _, root := range e.workspacesInUse() {
		maps.DeleteFunc(idle, func(_ int64, idle string) bool { return idle == root })
	}
	return e.letGo(ctx, nil, slices.Collect(maps.Keys(idle)))
}

// tidyPacks removes packs that hold nothing that is needed, and writes anew what is needed of those that hold little of it.
func (e *Engine) tidyPacks(ctx context.Context) error {
	sizes, err := e.files.shelf.Packs()
	if err != nil {
		return err
	}
	used, err := e.store.CopyBytes(ctx)
	for pack, size := range sizes {
		if err == nil && used[pack] > 0 && used[pack] < size/4*3 {
			err = e.repack(ctx, pack)
			used[pack] = 0
		}
		if err == nil && used[pack] == 0 {
			err = e.files.shelf.Remove(pack)
		}
	}
	return err
}

// repack writes what is needed of a pack anew. What cannot be read is lost, which whoever wants it back is told.
func (e *Engine) repack(ctx context.Context, pack string) error {
	copies, err := e.store.CopiesIn(ctx, pack)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(copies, 32) { // they are in memory at once
		moved, damaged, err := e.files.shelf.Move(part)
		if err != nil {
			return err
		}
		if damaged != nil {
			e.Log.Error("copies of files are damaged", "pack", pack, "error", damaged)
		}
		if _, err := e.store.Commit(ctx, &persistence.Commit{Tidy: persistence.FileTidy{Moved: moved}, AtMs: now()}); err != nil {
			return err
		}
	}
	return nil
}
