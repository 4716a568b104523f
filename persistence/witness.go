package persistence

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// witness writes a small file beside the database. It records how many commits the database had,
// and in which file. If the log loses its tail, or an older copy of the database comes back, the
// database itself cannot show that; the witness can.
//
// The database stores how many commits it has. At most a second after a commit, the writer updates
// that number in a transaction of its own, and then the witness. The witness may therefore be behind
// the database, but is never ahead of an intact one. Only the writer uses it.
type witness struct {
	file *os.File
	last witnessed // content as last read or written
	path string    // of the database
	log  *slog.Logger
}

// witnessed is the content of the witness file: what lashd last saw of the database.
type witnessed struct {
	StoreID string   `json:"storeId"`
	Epoch   int64    `json:"epoch"`
	Commits int64    `json:"commits"`          // as counted in the database
	Logged  bool     `json:"logged,omitempty"` // the log holds commits that are not in the database file
	File    identity `json:"file"`
	Log     identity `json:"log"`

	// ChangedNs is the change time of the database file, or 0 if the file has been written to since
	// the time was recorded. Boot identifies the boot of the machine in which it was recorded. After
	// a reboot ChangedNs is ignored, because a power loss may revert a change time. If Boot is
	// empty, the file was synced and ChangedNs stays valid after a reboot.
	ChangedNs int64  `json:"changedNs,omitempty"`
	Boot      string `json:"boot,omitempty"`
}

// witnessName is the witness file in the data directory.
const witnessName = "lashd.witness"

// witnessSize is the size of a disk sector in bytes, so that a write in place is atomic.
const witnessSize = 512

// openWitness opens the witness file of a database, and creates an empty one if necessary.
func openWitness(database string, log *slog.Logger) (*witness, error) {
	path := filepath.Join(filepath.Dir(database), witnessName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	seen, err := readWitness(path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &witness{file: f, last: seen, path: database, log: log}, nil
}

// readWitness reads the witness file without creating it. If the file is missing or its content is
// damaged, it returns a zero value.
func readWitness(path string) (seen witnessed, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return witnessed{}, nil
	}
	if json.Unmarshal(data, &seen) != nil {
		return witnessed{}, err // empty, or torn by a crash: nothing is known
	}
	return seen, nil
}

// save overwrites the file in place, because a full disk may have no room for another file. The
// write survives a power loss only with sync.
func (w *witness) save(now witnessed, sync bool) error {
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if _, err := w.file.WriteAt(fmt.Appendf(nil, "%-*s\n", witnessSize-1, data), 0); err != nil {
		return err
	}
	w.last = now
	if !sync {
		return nil
	}
	return w.file.Sync()
}

// close closes the file. A nil witness has none.
func (w *witness) close() error {
	if w == nil {
		return nil
	}
	return w.file.Close()
}

// update changes the content and writes it. A failure is only logged: a witness that is behind
// detects less.
func (w *witness) update(sync bool, change func(*witnessed)) {
	now := w.last
	change(&now)
	if err := w.save(now, sync); err != nil {
		w.log.Warn("witness not written", "error", err)
	}
}

// logged records that the log holds commits which the database file lacks.
func (w *witness) logged() {
	if w.last.Logged {
		return
	}
	w.update(false, func(now *witnessed) { now.Logged = true })
}

// beforeFold records that the log is about to be folded into the database file (a checkpoint of
// SQLite), and with mode TRUNCATE that the log may then be empty. The record is durable before the
// fold begins; otherwise a power loss could leave the witness
// and the database in disagreement.
func (w *witness) beforeFold(mode string) {
	w.update(true, func(now *witnessed) {
		now.ChangedNs, now.Boot = 0, ""
		now.Logged = now.Logged && mode != "TRUNCATE"
	})
}

// afterFold records the change time of the database file. whole says that the log is fully folded
// and no longer needed.
func (w *witness) afterFold(whole bool) {
	boot := bootID()
	file, err := stampOf(w.path)
	if err != nil {
		return
	}
	w.update(false, func(now *witnessed) {
		now.Logged = !whole
		if boot != "" {
			now.ChangedNs, now.Boot = file.changedNs, boot
		}
	})
}

// noteFiles records which files are in use. fresh is set for a new store or epoch: the record then
// starts over and must survive a power loss.
func (w *witness) noteFiles(db *meta, fresh bool) error {
	file, err := stampOf(w.path)
	if err != nil {
		return err
	}
	log, err := stampIfThere(w.path + "-wal")
	if err != nil {
		return err
	}
	if w.last.Log == log.identity && w.last.Epoch == db.facts.Epoch { // the same log, so also the same database file
		return nil
	}
	w.update(fresh, func(now *witnessed) {
		if fresh {
			*now = witnessed{}
		}
		now.StoreID, now.Epoch, now.Commits = db.facts.StoreID, db.facts.Epoch, db.commits
		now.File, now.Log = file.identity, log.identity
	})
	return nil
}

// sealClosed records a database that was closed properly. No connection of this process may be
// open, because closing the file here would release its locks.
func (w *witness) sealClosed() error {
	f, err := os.Open(w.path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil { // syncing also makes the change time durable
		return err
	}
	file, err := stampOf(w.path)
	if err != nil {
		return err
	}
	now := w.last
	now.Logged, now.Log, now.ChangedNs, now.Boot = false, identity{}, file.changedNs, ""
	return w.save(now, true)
}
