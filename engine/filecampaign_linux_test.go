package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lashd/engine"
	"lashd/rpc/protocol"
	"lashd/test/tree"
)

// TestManyTurnsInALargeTree runs turns in a tree that is larger than the budget. LASHD_LONG=1 has 1,000 of them, in one that is twice
// as large and has 10,000 files.
func TestManyTurnsInALargeTree(t *testing.T) {
	turns, files, kib := 120, 800, 4
	if os.Getenv("LASHD_LONG") != "" {
		turns, files, kib = 1000, 10_000, 20
	}
	t.Run("issue/6-2 peers/R14 copies stay within the budget, and recent turns can be undone", func(t *testing.T) {
		budget := int64(files*kib<<10) / 2
		text := noise((kib << 10) + turns*8 + files)
		var steps []func(string)
		for i := range turns {
			steps = append(steps, func(dir string) {
				for k := range 5 {
					write(t, dir, fmt.Sprintf("d%d/f%d", (i+k)%100, (i+k)%files), text[i*5+k:][:kib<<10])
				}
			})
		}
		d, id, dir := workspaceOf(t, setup{config: func(c *engine.Config) { c.FileLimits.Budget = budget }}, steps...)
		for i := range files {
			write(t, dir, fmt.Sprintf("d%d/f%d", i%100, i), text[turns*5+i:][:kib<<10])
		}
		most := int64(0)
		var before map[string]string
		var last protocol.TurnID
		for i := range turns {
			if i == turns-1 {
				before = tree.Read(t, dir)
			}
			last = d.turn(t, id, "go").TurnID
			most = max(most, size(t, filepath.Join(d.store.Dir(), "files")))
		}
		t.Logf("at most %d%% of the budget", most*100/budget)
		if most > budget {
			t.Errorf("copies took %d bytes, the budget is %d", most, budget)
		}
		oldest := onlyFiles(id, d.points(t, id)[0].TurnID)
		if _, err := d.History.Rewind(t.Context(), &oldest); err == nil {
			t.Error("the oldest point can be undone, so nothing was let go")
		}
		params := onlyFiles(id, last)
		params.Force = true // there is no room for copies of all files
		res := d.undo(t, params)
		if len(res.Files) != 5 {
			t.Errorf("the last turn has changed %+v", res.Files)
		}
		now := tree.Read(t, dir)
		for _, f := range res.Files {
			if f.Unkept != "" {
				before[f.Path] = now[f.Path]
			}
		}
		sameTree(t, dir, before)
	})
}
