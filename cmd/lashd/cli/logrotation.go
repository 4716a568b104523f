package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"lashd/cmd/internal/daemon"
)

// The daemon checks the size of its log at its start and every logCheck.
const (
	logLimit = 8 << 20 // size in bytes at which lashd.log is rotated
	logCheck = time.Hour
)

// keepLog rotates the log when it is too long, until ctx is done. It runs in every
// daemon, also in one that logs elsewhere; lashd.log then does not exist or does
// not grow.
func keepLog(ctx context.Context, e *daemon.Environment) {
	again := time.NewTicker(logCheck)
	defer again.Stop()
	for {
		if err := shorten(e.LogFile(), logLimit); err != nil {
			e.Log.Warn("cannot rotate the log", "error", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// shorten copies a file that is longer than limit bytes to FILE.old and empties
// it. Processes that have the file open for appending continue at its start. Text
// that they write between the copy and the truncation is lost. The file is not
// renamed, because the daemon's stderr would stay on the renamed file.
func shorten(file string, limit int64) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() <= limit || !info.Mode().IsRegular() {
		return err
	}
	old, err := os.OpenFile(file+".old", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(old, f); err != nil {
		return errors.Join(err, old.Close())
	}
	return errors.Join(old.Close(), f.Truncate(0))
}
