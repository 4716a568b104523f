package persistence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// witness is a small file beside the database that says how many commits there were, and which file had them: if the database's
// log lost its tail, or if an older copy came back, the database alone could not tell. The database counts its commits within a
// second, in a commit of its own, and the witness is written after that: it may be behind, but it is never ahead of a store that
// lost nothing.
type witness struct {
	file *os.File
	last witnessed // that was read or saved
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

// openWitness opens the file, or makes an empty one.
func openWitness(path string) (*witness, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	seen, err := readWitness(path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &witness{file: f, last: seen}, nil
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

// count has the database count what was committed since it last did, and then tells the witness.
func (s *Store) count(ctx context.Context) {
	tx := &tx{stmts: s.stmts}
	if s.uncounted > 0 {
		err := s.failed(tx.exec(ctx, "UPDATE meta SET value = CAST(CAST(value AS INTEGER) + ? AS TEXT) WHERE name = 'commits'", s.uncounted))
		if err != nil { // tried again later
			s.cfg.Log.Warn("commits not counted", "error", err)
			return
		}
		s.commits += s.uncounted
		s.uncounted = 0
	}
	s.saveWitness(true, func(w *witnessed) { w.Commits = s.commits })
}

// saveWitness changes what the witness says; the writer's.
func (s *Store) saveWitness(sync bool, change func(*witnessed)) {
	now := s.witness.last
	change(&now)
	if err := s.witness.save(now, sync); err != nil { // a witness that stays behind only sees less
		s.cfg.Log.Warn("witness not written", "error", err)
	}
}

// logged has the witness know that the log holds commits which nothing else does.
func (s *Store) logged() {
	if s.witness == nil || s.witness.last.Logged {
		return
	}
	s.saveWitness(false, func(w *witnessed) { w.Logged = true })
}

// beforeFold has the witness know that the database file is about to be written, and that the log may be cut off. It is on disk before
// that is done, as else the two would not agree after a loss of power.
func (s *Store) beforeFold(mode string) {
	if s.witness == nil {
		return
	}
	s.saveWitness(true, func(w *witnessed) {
		w.ChangedNs, w.Boot = 0, ""
		w.Logged = w.Logged && mode != "TRUNCATE"
	})
}

// afterFold has the witness know the database file as it is now, and whether the log is still needed.
func (s *Store) afterFold(whole bool) {
	boot := bootID()
	file, err := stampOf(s.path)
	if s.witness == nil || err != nil {
		return
	}
	s.saveWitness(false, func(w *witnessed) {
		w.Logged = !whole
		if boot != "" {
			w.ChangedNs, w.Boot = file.changedNs, boot
		}
	})
}

// sealClosed has the witness know a database that is closed properly. No connection of this process may be open.
func (s *Store) sealClosed() error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil { // the time of its last change, too
		return err
	}
	file, err := stampOf(s.path)
	if err != nil {
		return err
	}
	now := s.witness.last
	now.Logged, now.Log, now.ChangedNs, now.Boot = false, identity{}, file.changedNs, ""
	return s.witness.save(now, true)
}
