package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lashd/rpc/socket"
)

// checkLocal refuses a data directory on a network file system: the locks of a database cannot be relied on there.
func (e *environment) checkLocal() error {
	kind, err := socket.NetworkFilesystem(e.home)
	if err == nil && kind != "" {
		err = fmt.Errorf("the data directory %s is on %s, where locks and syncs of a database cannot be relied on; "+
			"choose a local file system with --home or LASHD_HOME", e.home, kind)
	}
	return err
}

// watchEvery is how often the database file is looked at: often enough that little goes to a file that is lost, rarely
// enough for an idle daemon.
const watchEvery = 2 * time.Second

// watched is the database file that was opened.
type watched struct {
	path string
	file fs.FileInfo
}

func watchDatabase(home string) (watched, error) {
	path := filepath.Join(home, "lashd.db")
	file, err := os.Lstat(path)
	return watched{path, file}, err
}

// wait returns when ctx is done, or with an error when the path is no longer that of the open file: what is committed from then
// on would be found by nobody. It looks without opening the file, which would drop SQLite's locks.
func (w watched) wait(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if now, err := os.Lstat(w.path); err != nil || !os.SameFile(now, w.file) {
			return fmt.Errorf("%s was moved, removed or replaced while it was open; put the old file back before lashd is started again", w.path)
		}
	}
}
