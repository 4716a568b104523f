package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	logLimit  = 8 << 20 // bytes of lashd.log with which it begins anew
	logCheck  = time.Hour
	lineLimit = 4 << 10 // bytes of a line of it that are told
)

// logFile is what a daemon that was started by itself writes its log to: it is its stderr.
func (e *environment) logFile() string { return filepath.Join(e.home, "lashd.log") }

// keepLog keeps the log from growing without end, until ctx is done.
func (e *environment) keepLog(ctx context.Context) {
	again := time.NewTicker(logCheck)
	defer again.Stop()
	for {
		if err := shorten(e.logFile(), logLimit); err != nil {
			e.log.Warn("cannot rotate the log", "error", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// shorten empties a file that is longer than limit bytes; what was in it is in FILE.old then. Whoever has it open to append to it goes
// on at its beginning; what it writes in just that moment is lost.
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

// lastLine is the last line of a file; of one that is longer than lineLimit, its end.
func lastLine(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, size-lineLimit), lineLimit))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1], err
}
