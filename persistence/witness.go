package persistence

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// witness is a small file beside the database that says how many commits there were, and which file had them: if the database's
// log lost its tail, or if an older copy came back, the database alone could not tell. The database counts its commits within a
// second, in a commit of its own, and the witness is written after that: it may be behind, but it is never ahead of a store that
// lost nothing.
type witness struct {
	file *os.File
	last witnessed // that was read or saved
	path string    // of the database
	log  *slog.Logger
}

// witnessed is what was last seen of a database.
type witnessed struct {
	StoreID string   `json:"storeId"`
	Epoch   int64    `json:"epoch"`
	Commits int64    `json:"commits"`
	Logged  bool     `json:"logged,omitempty"` // its log holds commits that the database file lacks
	File    identity `json:"file"`
	Log     identity `json:"log"`

	// ChangedNs is when the file was changed last, if nothing was written to it since; else 0. It holds in this run of the kernel,
	// or in all if Boot is empty: a change time may be lost with the power.
	ChangedNs int64  `json:"changedNs,omitempty"`
	Boot      string `json:"boot,omitempty"`
}

const witnessName = "lashd.witness"

// witnessSize is a disk sector, so that a write in place lands whole or not at all.
const witnessSize = 512

// openWitness opens the file of a database, or makes an empty one.
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

// readWitness reads the file without making one.
func readWitness(path string) (seen witnessed, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return witnessed{}, nil
	}
	if json.Unmarshal(data, &seen) != nil {
		return witnessed{}, err // new, or torn by a crash: it says nothing
	}
	return seen, nil
}

// save writes in place, as on a full disk there may be no room for another file. Only with sync it survives a loss of power.
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

func (w *witness) close() error {
	if w == nil {
		return nil
	}
	return w.file.Close()
}

// update changes what the witness says; the writer's.
func (w *witness) update(sync bool, change func(*witnessed)) {
	now := w.last
	change(&now)
	if err := w.save(now, sync); err != nil { // a witness that stays behind only sees less
		w.log.Warn("witness not written", "error", err)
	}
}

// logged has the witness know that the log holds commits which nothing else does.
func (w *witness) logged() {
	if w.last.Logged {
		return
	}
	w.update(false, func(now *witnessed) { now.Logged = true })
}

// beforeFold has the witness know that the database file is about to be written, and that the log may be cut off. It is on disk before
// that is done, as else the two would not agree after a loss of power.
func (w *witness) beforeFold(mode string) {
	w.update(true, func(now *witnessed) {
		now.ChangedNs, now.Boot = 0, ""
		now.Logged = now.Logged && mode != "TRUNCATE"
	})
}

// afterFold has the witness know the database file as it is now, and whether the log is still needed.
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

// noteFiles has the witness know which files are in use. That need not survive a loss of power unless the store is new to it.
func (w *witness) noteFiles(db *meta, fresh bool) error {
	file, err := stampOf(w.path)
	if err != nil {
		return err
	}
	log, err := stampIfThere(w.path + "-wal")
	if err != nil {
		return err
	}
	if w.last.Log == log.identity && w.last.Epoch == db.facts.Epoch { // then the file is that one, too
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

// sealClosed has the witness know a database that is closed properly. No connection of this process may be open.
func (w *witness) sealClosed() error {
	f, err := os.Open(w.path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil { // the time of its last change, too
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
