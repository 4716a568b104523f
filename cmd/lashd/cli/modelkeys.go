package cli

import (
	"context"
	"fmt"
	"os"
	"time"
)

// handKeys sends the daemon the API keys that it lacks and that the environment of
// this process has. The daemon keeps them in memory only. Commands that start
// turns call it, so that a daemon works without a key in its own environment.
func (e *environment) handKeys(ctx context.Context, l *link) error {
	return l.reason(l.HandKeys(context.WithoutCancel(ctx), l.daemon.KeysWanted, os.Getenv))
}

// notSet says what to do about a key that is not in the environment.
func notSet(name string) string { return name + " is not set; export it" }

// notSetAtStart returns a function that says what to do about a key that the
// daemon lacks; started is the start time of the daemon.
func notSetAtStart(started time.Time) func(name string) string {
	return func(name string) string {
		return fmt.Sprintf(`%s was not set when the daemon started (%s). Export it and run lashd run or lashd chat in that shell; `+
			`they pass the key to the daemon. Or restart the daemon: lashd call shutdown '{"daemon":true}'`, name, started.Format(time.DateTime))
	}
}
