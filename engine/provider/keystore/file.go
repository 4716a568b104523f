package keystore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"lashd/internal/durable"
)

const (
	lockLimit = 15 * time.Second      // for other commands to finish; a keyring that hangs takes keyringLimit of it
	lockPause = 20 * time.Millisecond // between attempts
)

// change locks keys.lock beside the file and runs edit on the entries of the file and stores them if edit returns true. One process at a time does so for a data
// directory, and the keyring changes within that time too, so that the file and the keyring agree.
func (s *Store) change(ctx context.Context, edit func(map[string]entry) (bool, error)) error {
	if err := makeDir(s.dir); err != nil {
		return err
	}
	lock := flock.New(strings.TrimSuffix(s.Path(), ".json")+".lock", flock.SetPermissions(0o600))
	defer lock.Close()
	waiting, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	if _, err := lock.TryLockContext(waiting, lockPause); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return fmt.Errorf("another lashd has been changing %s for %s; try again when it has finished", s.Path(), lockLimit)
		}
		return fmt.Errorf("lock %s: %w", s.Path(), err)
	}
	entries, err := s.read()
	if err != nil {
		return err
	}
	if changed, err := edit(entries); err != nil || !changed {
		return err
	}
	return s.write(entries)
}

// Check reports why the file cannot be used; nil if it can, or if there is none yet.
func (s *Store) Check() error {
	_, err := s.read()
	return err
}

// read reads the file. A missing file has no keys. A file that others can read is an error, because its keys may be known to them.
func (s *Store) read() (map[string]entry, error) {
	entries := map[string]entry{}
	f, err := os.Open(s.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return entries, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkPrivate(s.Path(), info); err != nil {
		return nil, err
	}
	if err := json.NewDecoder(f).Decode(&entries); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; remove it and run lash login", s.Path(), plain(err))
	}
	if entries == nil { // the file holds null
		entries = map[string]entry{}
	}
	return entries, nil
}

// plain returns a JSON error without the text of the file, which may be a key.
func plain(err error) error {
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("invalid JSON at byte %d", at.Offset)
	}
	return errors.New("invalid JSON")
}

// write replaces the file at once, with mode 0600. Afterwards the new file survives a power loss.
func (s *Store) write(entries map[string]entry) error {
	data, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(s.Path(), s.Path()+".next", append(data, '\n'), 0o600)
}

// makeDir makes a directory and those above it, which survive a power loss then.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if above := filepath.Dir(dir); above != dir {
		if err := makeDir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.Sync(filepath.Dir(dir))
}
