package daemon

import (
	"context"
	"os"
	"path/filepath"
)

// NoteStale prints a note if the running daemon has read an older config.toml.
// Without a daemon it does nothing.
func (e *Environment) NoteStale(ctx context.Context) {
	l, err := e.Dial(ctx, false, nil)
	if err != nil {
		return // no daemon: the next one reads the current file
	}
	defer l.Close()
	if l.Stale() {
		e.Note("config.toml changed after the daemon started; %s", FreshConfig)
	}
}

// FreshConfig is the advice for a daemon that uses an old config.toml.
const FreshConfig = "restart the daemon to apply it: lash stop; the next command starts it"

// Stale reports whether config.toml has changed since the daemon read it. It
// compares the time of the file with that of the lock file, which the daemon
// writes just after it has read config.toml. Both times come from the clock of the
// file system. If a file cannot be read, it returns false.
func (l *Link) Stale() bool {
	read, err := os.Stat(filepath.Join(l.Daemon.DataDir, "lashd.lock.json"))
	if err != nil {
		return false
	}
	now, err := os.Stat(filepath.Join(l.Daemon.DataDir, "config.toml"))
	return err == nil && now.ModTime().After(read.ModTime())
}
