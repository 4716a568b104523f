package persistence

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	partialPrefix = ".lashd-backup-"        // of a directory that is to become a backup, beside its target
	recordPrefix  = "lashd-backup-running-" // of a file in the data directory that names such a directory, by the same suffix
)

// partial is the directory of a backup that is not whole yet. It is locked as long as somebody works at it: the lock ends with the
// process, so that what a killed one left can be told from what another one is at work on.
type partial struct {
	path   string
	record string
	unlock func() error
}

// newPartial makes the directory. What names it, in the data directory dir, is durable first, so that the next start finds it.
func newPartial(dir, beside string) (*partial, error) {
	suffix := rand.Text()
	p := &partial{path: filepath.Join(beside, partialPrefix+suffix), record: filepath.Join(dir, recordPrefix+suffix), unlock: func() error { return nil }}
	if _, err := os.Stat(beside); err != nil {
		return nil, err
	}
	err := writeSynced(p.record, []byte(p.path))
	if err == nil {
		err = os.Mkdir(p.path, 0o700)
	}
	if err == nil {
		err = p.lock()
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(p.record))
	}
	return p, nil
}

// lock fails if a backup that began at the same moment took the new directory for one that was left.
func (p *partial) lock() error {
	unlock, _, err := lockDir(p.path)
	if err == nil && unlock == nil || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("another backup to %s began at the same moment; try again", filepath.Dir(p.path))
	}
	p.unlock = unlock
	return err
}

// close removes what is left of the directory. After the rename there is nothing under its name.
func (p *partial) close() error {
	return errors.Join(os.RemoveAll(p.path), os.Remove(p.record), p.unlock())
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}

// removePartials removes the partial backups in a directory that nobody is at work on.
func removePartials(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), partialPrefix) {
			errs = append(errs, removePartial(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// removePartial removes a directory if it is one of ours and nobody is at work on it. A symbolic link is left alone.
func removePartial(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	unlock, held, err := lockDir(path)
	if held || err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(path), unlock())
}

// recordedPartials lists the records in a data directory. When it is opened they are of users that were killed.
func recordedPartials(dir string) (records []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), recordPrefix) {
			records = append(records, filepath.Join(dir, e.Name()))
		}
	}
	return records, err
}

// removeRecorded removes the partial backups that records name. A record stays if its directory does.
func removeRecorded(records []string) error {
	var errs []error
	for _, record := range records {
		errs = append(errs, removeOne(record))
	}
	return errors.Join(errs...)
}

func removeOne(record string) error {
	data, err := os.ReadFile(record)
	if err != nil {
		return err
	}
	path := string(data)
	suffix := strings.TrimPrefix(filepath.Base(record), recordPrefix)
	if filepath.IsAbs(path) && filepath.Base(path) == partialPrefix+suffix { // else it was torn by a crash, before the directory was made
		if err := removePartial(path); err != nil {
			return fmt.Errorf("partial backup: %w", err)
		}
	}
	return os.Remove(record)
}
