package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// markName is the name of the mark file in the data directory.
const markName = "lashd.processes"

// DirNonce returns the nonce of the daemon of a data directory. It contains the directory's identity, so a copied
// directory, which has the same store id, gets another nonce, and a renamed one keeps its nonce.
func DirNonce(dir, store string) string { return store + inode(dir) }

// Mark is a file that says that processes with a nonce may be alive. The next daemon sweeps only if the file exists,
// because inspecting all processes takes longer than the rest of its start. The file holds the path of the processes'
// cgroup, if they have one.
type Mark struct {
	path, nonce string
}

// Begin sets the mark in dir. If an earlier run left its mark, Begin first sweeps up its processes. Afterwards
// supervisors run in a cgroup, where the system allows one. Call it before starting anything with the nonce. If the
// sweep fails, Begin returns the error together with the mark, which is set anyway.
func Begin(dir, nonce string) (*Mark, error) {
	m := &Mark{path: filepath.Join(dir, markName), nonce: nonce}
	// Not synced: a crash that loses the file also ends the processes.
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

// End sweeps, and removes the mark if nothing is left. Call it after the last child with the nonce has been started.
func (m *Mark) End() error {
	_, err := Sweep(m.nonce)
	if err := errors.Join(err, family.cgroup.close()); err != nil {
		return err
	}
	return os.Remove(m.path)
}
