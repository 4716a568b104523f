package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"lashd/internal/durable"
	"lashd/internal/pathresolve"
)

const (
	lockLimit = 15 * time.Second      // for other changes to finish; the one of a key waits for the keyring
	lockPause = 20 * time.Millisecond // between attempts
)

// Editor changes the config.toml of a data directory. It is valid only while Edit runs, so of all processes only one has one at a time.
type Editor struct{ home string }

// Edit runs change while no other process or goroutine changes config.toml. A change reads the file within that time, so it loses
// nothing that another one wrote.
func Edit(ctx context.Context, home string, change func(*Editor) error) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(home, "config.lock"), flock.SetPermissions(0o600))
	defer lock.Close()
	waiting, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	if _, err := lock.TryLockContext(waiting, lockPause); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return fmt.Errorf("another lashd has been changing %s for %s; try again when it has finished", File(home), lockLimit)
		}
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	return change(&Editor{home})
}

// Read returns the bytes of the file; none if there is no file.
func (e *Editor) Read() ([]byte, error) {
	data, err := os.ReadFile(File(e.home))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// SetBaseURL writes the address of a provider; the rest of the file stays as it is. It fails and writes nothing if LoadWithBaseURL fails.
func (e *Editor) SetBaseURL(name, url string) error {
	m, err := LoadWithBaseURL(e.home, name, url)
	if err != nil {
		return err
	}
	return e.Write(m.data)
}

// Write replaces the file at once, and a power loss does not undo that. It keeps the mode of the file, and follows a symbolic link to it.
// A process that is killed during a Write leaves the earlier file, and a copy beside it that the next Write removes.
func (e *Editor) Write(data []byte) error {
	path, mode := File(e.home), os.FileMode(0o600)
	if real, err := pathresolve.Real(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return durable.Replace(path, path+".next", data, mode)
}
