package persistence

import (
	"fmt"
	"math/rand/v2"
)

// identity tells a file from every other one. A copy of a file has another identity, wherever it is put; a file that is
// overwritten in place keeps its own.
type identity struct {
	Inode  uint64 `json:"inode,omitempty"`
	BornNs int64  `json:"bornNs,omitempty"` // 0: the file system does not say
}

// fileStamp is what the file system says of a file. No program can set changedNs, so it also tells a file that was overwritten.
type fileStamp struct {
	identity
	changedNs  int64
	modifiedNs int64
	size       int64
}

// present is a database as it is found.
type present struct {
	storeID string
	epoch   int64
	before  int64 // the epoch before this one; 0: none
	commits int64
	backup  bool // it is a backup that was not opened yet
	file    fileStamp
	log     fileStamp // zero: there is none
}

// continuity is how a database relates to the one that the witness saw last.
type continuity int

const (
	continues continuity = iota // it is that one, with all its commits
	copied                      // it is a copy of some time: other histories may have grown from it
	rolled                      // commits that were seen are gone
)

// judge compares a database with what was seen of it; boot is this run of the kernel.
func (w witnessed) judge(db present, boot string) (how continuity, why string) {
	if w.StoreID == db.storeID {
		if why := w.missing(db); why != "" {
			return rolled, why
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

// missing says what of the seen commits the database lacks; "" if nothing. The epoch before the present one is that of a witness
// which was not written any more when the new epoch began.
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

// overwritten tells whether the database file is another one than lashd last wrote, or was written by somebody else since.
func (w witnessed) overwritten(file fileStamp, boot string) bool {
	if w.File != file.identity {
		return true
	}
	return w.ChangedNs != 0 && (w.Boot == "" || w.Boot == boot) && w.ChangedNs != file.changedNs
}

// staleLog tells whether the log belongs to a database file that is not there any more: SQLite would mix the two.
func (w witnessed) staleLog(file, log fileStamp, boot string) bool {
	switch {
	case log.size == 0 || w.Log != log.identity || w.Log == identity{} || !w.overwritten(file, boot):
		return false
	case w.File != file.identity:
		return true
	}
	// Of files that were both written over, each belongs to the other. A write sets both times; cp -a sets back only the first.
	return log.modifiedNs == log.changedNs && log.changedNs <= file.changedNs
}

// newEpoch draws an epoch. Two copies of a store that go on apart never draw the same one. It has at most 14 digits, which
// every JSON library keeps.
func newEpoch() int64 { return 1 + rand.Int64N(1e14-1) }
