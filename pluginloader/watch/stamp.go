package watch

import (
	"io/fs"
	"time"
)

// Stamp is what there is to see of a file without reading it. While it is the same, and is not hot, so is the file.
type Stamp struct {
	Dev, Ino uint64 // which file it is
	Mode     fs.FileMode
	Size     int64
	Modified int64 // in nanoseconds, as can be set by hand
	Changed  int64 // when anything about it was changed last, which cannot be set by hand
}

// StampOf gives the Stamp of a file of the system. On systems that do not tell which file it is, or when it was changed, it
// holds less.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Mode: info.Mode(), Size: info.Size(), Modified: info.ModTime().UnixNano(), Changed: info.ModTime().UnixNano()}
	s.identify(info)
	return s
}

// granule is how far apart two changes are at least that always have different times.
const granule = 20 * time.Millisecond

// Hot tells whether the file was changed so short before now that another change might leave the same Stamp.
func (s Stamp) Hot(now time.Time) bool {
	age := time.Duration(now.UnixNano() - s.Changed)
	return age < granule && age > -granule
}
