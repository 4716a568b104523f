package daemon

import (
	"context"
	"os"
	"path/filepath"

	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

// NoteStale prints a note if the running daemon has read an older config.toml.
// Without a daemon it does nothing.
func (e *Environment) NoteStale(ctx context.Context) {
	l, err := e.Dial(ctx, false, nil)
	if err != nil {
		return // no daemon: the next one reads the current file
	}
	defer l.Close()
	if l.Stale(ctx) {
		e.Note("config.toml changed after the daemon started; %s", FreshConfig)
	}
}

// FreshConfig is the advice for a daemon that uses an old config.toml.
const FreshConfig = "restart the daemon to apply it: lash stop; the next command starts it"

// Stale reports whether config.toml has a change that the daemon does not apply. If
// a file cannot be read, it returns false.
func (l *Link) Stale(ctx context.Context) bool {
	if !l.changed() {
		return false
	}
	var models protocol.ModelListResult
	_ = l.Call(ctx, "model/list", nil, &models) // the daemon reads the file again; if it cannot, the file counts as not applied
	return l.changed()
}

// changed reports whether config.toml is newer than the lock file, which the daemon
// writes just after it has read config.toml, and touches when it applies a change
// without a restart.
func (l *Link) changed() bool {
	read, err := os.Stat(socket.InfoFile(l.Daemon.DataDir))
	if err != nil {
		return false
	}
	now, err := os.Stat(filepath.Join(l.Daemon.DataDir, "config.toml"))
	return err == nil && now.ModTime().After(read.ModTime())
}
