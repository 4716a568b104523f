package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const markName = "lashd.processes"

// Mark says, by a file, that processes with a nonce may be alive. While it is there the next run sweeps before it starts
// anything; looking at every process of the system costs more than the rest of a start.
type Mark struct {
	path, nonce string
}

// Begin sweeps up what an earlier run left that did not come to its End, and sets the mark in dir. Call it before anything
// is started with the nonce. When the sweep fails, which is the error, the mark is set all the same.
func Begin(dir, nonce string) (*Mark, error) {
	m := &Mark{path: filepath.Join(dir, markName), nonce: nonce}
	// It is not synced: what makes the system forget the file ends the processes too.
	f, err := os.OpenFile(m.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		return m, f.Close()
	}
	_, failed := Sweep(nonce)
	if !errors.Is(err, fs.ErrExist) {
		failed = errors.Join(failed, fmt.Errorf("mark %s: %w", dir, err))
	}
	return m, failed
}

// End sweeps, and takes the mark away if nothing is left. Call it when nothing is started with the nonce any more.
func (m *Mark) End() error {
	if _, err := Sweep(m.nonce); err != nil {
		return err
	}
	return os.Remove(m.path)
}
