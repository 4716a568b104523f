package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// unusedFor is how long a workspace keeps its temporary files and caches after its last command in a sandbox.
const unusedFor = 30 * 24 * time.Hour

// removing starts the names of directories that are being removed.
const removing = ".removing-"

// Retire takes the temporary files and caches away from workspaces in which no command has run for 30 days. It only renames directories;
// RemoveRetired removes them. Call it before the first command of the daemon, because it does not look for running ones.
func (p Places) Retire(now time.Time) (failed error) {
	entries, err := os.ReadDir(p.Scratch)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), removing) || now.Sub(changed(info)) < unusedFor {
			continue
		}
		away := fmt.Sprintf("%s%s-%d", removing, e.Name(), now.UnixNano())
		failed = errors.Join(failed, os.Rename(filepath.Join(p.Scratch, e.Name()), filepath.Join(p.Scratch, away)))
	}
	return errors.Join(err, failed)
}

// RemoveRetired removes the directories that Retire has renamed, also before a crash. It ends early if ctx ends.
func (p Places) RemoveRetired(ctx context.Context) (failed error) {
	retired, err := filepath.Glob(filepath.Join(p.Scratch, removing+"*"))
	for _, path := range retired {
		failed = errors.Join(failed, removeAll(ctx, path))
	}
	return errors.Join(err, failed)
}

// removeAll removes a directory, including directories that forbid it, such as those of Go's module cache. It follows no links.
func removeAll(ctx context.Context, dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if d != nil && d.IsDir() && err == nil {
			return os.Chmod(path, 0o700) // before WalkDir lists it
		}
		return nil // RemoveAll reports what remains
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// Size returns the number of workspaces with temporary files, and the bytes of these files. Files that it cannot read count nothing.
func (p Places) Size(ctx context.Context) (workspaces int, bytes int64) {
	entries, _ := os.ReadDir(p.Scratch) // without the directory there are none
	for _, e := range entries {
		workspaces++
		_ = filepath.WalkDir(filepath.Join(p.Scratch, e.Name()), func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return ctx.Err()
			}
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
			return nil
		})
	}
	return workspaces, bytes
}
