package persistence

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lashd/internal/durable"
)

// Names of a backup in progress. Both end in the same random suffix.
const (
	partialPrefix = ".lashd-backup-"        // directory beside the target, renamed to it at the end
	recordPrefix  = "lashd-backup-running-" // file in the data directory that holds the path of the directory
)

// partial is the directory of an unfinished backup. It is locked while the backup runs. The lock
// ends with the process, so a directory without a lock was left by a killed backup.
type partial struct {
	path   string
	record string
	unlock func() error
}

// newPartial creates the directory beside the target. It first stores a durable record of its path
// in the data directory dir, so that the next start can remove it after a crash.
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

// lock locks the new directory. It fails if a concurrent backup has taken the directory for an
// abandoned one.
func (p *partial) lock() error {
	unlock, _, err := lockDir(p.path)
	if err == nil && unlock == nil || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("another backup to %s started at the same moment; try again", filepath.Dir(p.path))
	}
	p.unlock = unlock
	return err
}

// close removes the directory and its record. After the rename the directory no longer has this
// name.
func (p *partial) close() error {
	return errors.Join(os.RemoveAll(p.path), os.Remove(p.record), p.unlock())
}

// writeSynced creates a file and makes its content and its name durable.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = durable.Sync(filepath.Dir(path))
	}
	return err
}

// removePartials removes the abandoned partial backups in a directory.
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

// removePartial removes a directory that no process has locked. It leaves symbolic links and
// directories of other users alone.
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

// recordedPartials lists the records in a data directory. At Open, all of them belong to killed
// daemons.
func recordedPartials(dir string) (records []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), recordPrefix) {
			records = append(records, filepath.Join(dir, e.Name()))
		}
	}
	return records, err
}

// removeRecorded removes the partial backups that the records name. A record stays if its directory
// cannot be removed.
func removeRecorded(records []string) error {
	var errs []error
	for _, record := range records {
		errs = append(errs, removeOne(record))
	}
	return errors.Join(errs...)
}

// removeOne removes the partial backup of one record, and then the record.
func removeOne(record string) error {
	data, err := os.ReadFile(record)
	if err != nil {
		return err
	}
	path := string(data)
	suffix := strings.TrimPrefix(filepath.Base(record), recordPrefix)
	if filepath.IsAbs(path) && filepath.Base(path) == partialPrefix+suffix { // otherwise a crash tore the record before the directory existed
		if err := removePartial(path); err != nil {
			return fmt.Errorf("partial backup: %w", err)
		}
	}
	return os.Remove(record)
}
