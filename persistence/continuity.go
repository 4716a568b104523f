package persistence

import (
	"fmt"
	"math/rand/v2"
)

// identity distinguishes a file from all others, also from copies of it. A file that is overwritten
// in place keeps its identity.
type identity struct {
	Inode  uint64 `json:"inode,omitempty"`
	BornNs int64  `json:"bornNs,omitempty"` // creation time; 0: the file system does not record it
}

// fileStamp is what the file system records about a file. Programs cannot set changedNs, so it also
// shows that a file was overwritten. Times are nanoseconds since 1970.
type fileStamp struct {
	identity
	changedNs  int64
	modifiedNs int64
	size       int64
}

// present is the state of a database when it is opened, before anything is written.
type present struct {
	storeID string
	epoch   int64
	before  int64 // previous epoch; 0: none
	commits int64 // as counted in the database
	backup  bool  // a backup that was never opened
	file    fileStamp
	log     fileStamp // zero: no log exists
}

// continuity is how a database relates to the one that the witness saw last.
type continuity int

const (
	continues  continuity = iota // the same database, with all its commits
	copied                       // a copy from some time; other histories may have grown from it
	rolledBack                   // commits that the witness saw are gone
)

// judge compares a database with what the witness recorded. boot identifies this run of the kernel.
// why says what differs, for the log and the user; it is empty if the database continues.
func (w witnessed) judge(db present, boot string) (how continuity, why string) {
	if w.StoreID == db.storeID {
		if why := w.missing(db); why != "" {
			return rolledBack, why
		}
	}
	switch {
	case db.backup:
		return copied, "it is a backup"
	case w.StoreID == "":
		return copied, "nothing records its last known state"
	case w.StoreID != db.storeID:
		return copied, "a different store was here before"
	case w.overwritten(db.file, boot):
		return copied, "the file was copied here"
	}
	return continues, ""
}

// missing describes the recorded commits that the database lacks, or returns "". If the witness has
// the epoch before the current one, it could not be written when the new epoch began.
func (w witnessed) missing(db present) string {
	switch {
	case w.Epoch == db.before:
		return ""
	case w.Epoch == db.epoch && w.Commits > db.commits:
		return fmt.Sprintf("the database is older than the last one seen (%d commits, expected %d)", db.commits, w.Commits)
	case w.Epoch != db.epoch:
		return fmt.Sprintf("the database is not the last one seen (epoch %d, expected %d)", db.epoch, w.Epoch)
	case w.Logged && db.log.size == 0:
		return fmt.Sprintf("the database lost its newest commits because %s-wal was removed before they were copied to %[1]s", fileName)
	}
	return ""
}

// overwritten reports whether the database file is not the one that lashd last wrote, or another
// program has written it since. The change time counts only within one run of the kernel.
func (w witnessed) overwritten(file fileStamp, boot string) bool {
	if w.File != file.identity {
		return true
	}
	return w.ChangedNs != 0 && (w.Boot == "" || w.Boot == boot) && w.ChangedNs != file.changedNs
}

// staleLog reports whether the log belongs to a database file that was replaced. SQLite would apply
// it to the new file and corrupt it.
func (w witnessed) staleLog(file, log fileStamp, boot string) bool {
	switch {
	case log.size == 0 || w.Log != log.identity || w.Log == identity{} || !w.overwritten(file, boot):
		return false
	case w.File != file.identity:
		return true
	}
	// If both files were overwritten they belong together. A write sets both times; cp -a resets only the modification time.
	return log.modifiedNs == log.changedNs && log.changedNs <= file.changedNs
}

// newEpoch returns a random epoch, so that two copies of a store never choose the same one. It has
// at most 14 digits, which every JSON library keeps exactly.
func newEpoch() int64 { return 1 + rand.Int64N(1e14-1) }
