package watch

import (
	"io/fs"
	"time"
)

// Stamp describes a file without its contents. While the stamp is equal and not hot, the contents
// are unchanged. Programs cannot set Changed, so it reveals a change that restores the modification
// time.
type Stamp struct {
	// Dev and Ino identify the file. Ino is 0 on systems that do not report it.
	Dev, Ino uint64 // file identity
	Mode     fs.FileMode
	Size     int64
	Modified int64 // nanoseconds since 1970; programs can set it
	Changed  int64 // nanoseconds since 1970 of the last change of contents or attributes
}

// StampOf returns the stamp of a file from its Stat or Lstat result. Systems that report neither
// identity nor change time give a weaker stamp.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Mode: info.Mode(), Size: info.Size(), Modified: info.ModTime().UnixNano(), Changed: info.ModTime().UnixNano()}
	s.identify(info)
	return s
}

// granule is the resolution of file times that Hot assumes: two changes further apart have
// different times.
const granule = 20 * time.Millisecond

// Hot reports whether the file changed so recently that a further change might leave the same
// stamp.
func (s Stamp) Hot(now time.Time) bool {
	age := time.Duration(now.UnixNano() - s.Changed)
	return age < granule && age > -granule
}
