package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"lashd/rpc/protocol"
)

type backupCommand struct {
	Dir string `arg:"" help:"A directory that is not there yet."`
}

// Help is shown by --help.
func (backupCommand) Help() string {
	return `Copies all that is stored into a new directory, while turns go on, and verifies the copy: never copy the database as a file while lashd runs.
To go back to the copy, put it in the place of the data directory while no daemon runs (docs/recovery.md). Clients then read their sessions again. lashd --home DIR looks at it where it is; but a daemon
that runs on it goes on with the turns, tasks and triggers that are in it, too.
What is not copied: config.toml, plugins, what tasks have put out, and copies of files for undo.

A missing or damaged file or row does not stop the backup: the rest is copied, and the damage is listed.

Exit codes: 0 all is copied, 1 failed, 6 copied, except for what is listed.

Example: lashd backup ~/lashd-monday`
}

func (c backupCommand) Run(ctx context.Context, e *environment) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s already exists; name a directory that does not exist yet", dir)
	}
	var r protocol.ServerBackupResult
	if err := e.ask(ctx, "server/backup", protocol.ServerBackupParams{Dir: dir}, &r); err != nil {
		return err
	}
	damaged := slices.Concat(r.Missing, r.Problems)
	if len(damaged) == 0 {
		e.note("copied to %s and verified", r.Dir)
		return nil
	}
	for _, d := range r.Missing {
		e.note("missing or damaged, not copied: %s", d)
	}
	for _, p := range r.Problems {
		e.note("damaged, copied as it is: %s", p)
	}
	return &exitError{exitPartial, fmt.Errorf("the copy in %s lacks what is listed above; lashd doctor checks the data directory, and an older backup may have the files", r.Dir)}
}
