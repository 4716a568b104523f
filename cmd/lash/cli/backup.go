package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
	progress := console.Begin("copying and verifying the data", "Ctrl-C cancels the copy")
	defer progress.End()
	var r protocol.ServerBackupResult
	if err := e.Ask(ctx, "server/backup", protocol.ServerBackupParams{Dir: dir}, &r); err != nil {
		return err
	}
	progress.End()
	damaged := slices.Concat(r.Missing, r.Problems)
	if len(damaged) == 0 {
		e.Note("copied to %s and verified", r.Dir)
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
