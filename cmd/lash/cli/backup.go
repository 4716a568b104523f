package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// backupCommand implements lash backup. The daemon makes the copy, because only
// it can copy the database consistently while turns run.
type backupCommand struct {
	Dir string `arg:"" help:"Directory to create."`
}

// Help is shown by --help.
func (backupCommand) Help() string {
	return `Copies sessions, artifacts and triggers to a new directory and verifies the copy. Turns keep running. Do not copy
the database file yourself while lashd runs.

The copy does not contain config.toml, plugins, task output or the file copies for undo. Damaged or missing data does not stop the
backup; lashd lists it.

To restore a backup, stop the daemon and replace the data directory with the copy (see docs/recovery.md). Be careful with lashd
--home DIR: a daemon started on the copy also continues its turns, tasks and triggers.

Exit codes: 0 complete, 1 failure, 6 copied, except for the listed damage.

Example: lash backup ~/lashd-monday`
}

// Run asks the daemon for a copy in a new directory. Damage that the daemon found
// is listed and gives console.ExitPartial; the rest has been copied and verified.
// Dir is made absolute, because the daemon has another working directory.
func (c backupCommand) Run(ctx context.Context, e *daemon.Environment) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s already exists; choose a directory that does not exist", dir)
	}
	began := time.Now()
	r, err := c.copy(ctx, e, dir)
	switch {
	case ctx.Err() != nil:
		return console.Exit(console.ExitCancelled, fmt.Errorf("cancelled; there is no copy in %s", dir))
	case err != nil:
		return err
	}
	damaged := slices.Concat(r.Missing, r.Problems)
	if len(damaged) == 0 {
		e.Note("copied %s to %s in %s, and verified the copy", mebibytes(sizeBelow(r.Dir)), r.Dir, span(time.Since(began)))
		return nil
	}
	for _, d := range r.Missing {
		e.Note("missing or damaged, not copied: %s", d)
	}
	for _, p := range r.Problems {
		e.Note("damaged, copied unchanged: %s", p)
	}
	return console.Exit(console.ExitPartial, fmt.Errorf("the copy in %s is incomplete; run lash doctor to check the data directory, or take the missing files from an older backup", r.Dir))
}

// copy makes the copy and shows how far it is. The daemon reports no progress, so that is the size of the unfinished copy, which lies
// beside dir.
func (c backupCommand) copy(ctx context.Context, e *daemon.Environment, dir string) (r protocol.ServerBackupResult, err error) {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return r, err
	}
	defer l.Close()
	var used protocol.DiagnosticsResult
	if err := l.Call(ctx, "server/diagnostics", nil, &used); err != nil {
		return r, err
	}
	progress := console.Begin("copying and verifying the data", "Ctrl-C cancels the copy")
	defer progress.End()
	all := used.DBBytes + sizeBelow(filepath.Join(l.Daemon.DataDir, "blobs"))
	watching, done := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { watchCopy(watching, filepath.Dir(dir), all, progress.Far) })
	err = l.Call(ctx, "server/backup", protocol.ServerBackupParams{Dir: dir}, &r)
	done()
	group.Wait()
	return r, err
}

// watchCopy reports how much of the data an unfinished copy in a directory has, until ctx is done.
func watchCopy(ctx context.Context, parent string, all int64, far func(format string, args ...any)) {
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if copies, _ := filepath.Glob(filepath.Join(parent, ".lashd-backup-*")); len(copies) == 1 { // the pattern is valid
			far("%s of about %s written", mebibytes(sizeBelow(copies[0])), mebibytes(all))
		}
	}
}

// sizeBelow returns the size of all files in a directory. Files that disappear while it reads do not count.
func sizeBelow(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil // so that the walk cannot fail
	})
	return size
}

// mebibytes returns a size in MiB, rounded up.
func mebibytes(size int64) string { return fmt.Sprintf("%d MiB", (size+1<<20-1)>>20) }
