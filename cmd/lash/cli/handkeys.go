package cli

import (
	"context"
	"os"

	"lashd/cmd/internal/daemon"
)

// handKeys sends the daemon the API keys that it lacks and that the environment of
// this process has. The daemon keeps them in memory only. Commands that start
// turns call it, so that a daemon works without a key in its own environment.
func handKeys(ctx context.Context, e *daemon.Environment, l *daemon.Link) error {
	return l.Reason(l.HandKeys(context.WithoutCancel(ctx), l.Daemon.KeysWanted, os.Getenv))
}
