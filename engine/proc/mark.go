package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const markName = "lashd.processes"

// DirNonce is the nonce of the daemon of a data directory. A copy of the directory, which holds the same store, has another one, and a
// renamed directory keeps its own.
func DirNonce(dir, store string) string { return store + inode(dir) }

// Mark says, by a file, that processes with a nonce may be alive. While it is there the next run sweeps before it starts
// anything; looking at every process of the system costs more than the rest of a start. The file holds the path of the cgroup of these
// processes, if they have one.
type Mark struct {
	path, nonce string
}

// Begin sweeps up what an earlier run left that did not come to its End, and sets the mark in dir. From then on supervisors run in a
// cgroup, where the system allows one. Call it before anything is started with the nonce. When the sweep fails, which is the error, the
// mark is set all the same.
func Begin(dir, nonce string) (*Mark, error) {
	m := &Mark{path: filepath.Join(dir, markName), nonce: nonce}
	// It is not synced: what makes the system forget the file ends the processes too.
	f, err := os.OpenFile(m.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		return m, errors.Join(f.Close(), family.cgroup.begin(nonce, m.path))
	}
	failed := family.cgroup.begin(nonce, m.path)
	_, swept := Sweep(nonce)
	failed = errors.Join(failed, swept)
	if !errors.Is(err, fs.ErrExist) {
		failed = errors.Join(failed, fmt.Errorf("mark %s: %w", dir, err))
	}
	return m, failed
}

// End sweeps, and takes the mark away if nothing is left. Call it when nothing is started with the nonce any more.
func (m *Mark) End() error {
	_, err := Sweep(m.nonce)
	if err := errors.Join(err, family.cgroup.close()); err != nil {
		return err
	}
	return os.Remove(m.path)
}
