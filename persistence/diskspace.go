package persistence

import (
	"errors"
	"os"
	"sync/atomic"

	"lashd/rpc/protocol"
)

// ballastSize is the size in bytes of the reserved space.
const ballastSize = 16 << 20

// fullDisk is the log message when the reserved space is released.
const fullDisk = "the disk is full; lashd starts no new work until space is free"

// ballast is a file that reserves disk space. When the disk is full lashd deletes it, so that
// running turns can finish and their results can be stored. While it is deleted, no new work
// starts. away is read from any goroutine.
type ballast struct {
	path     string
	released atomic.Bool
}

// release deletes the file, and reports whether that freed space.
func (b *ballast) release() bool {
	return !b.released.Swap(true) && os.Remove(b.path) == nil
}

// restore creates the file again. It fails while the disk has no space for it.
func (b *ballast) restore() error {
	if fileSize(b.path) == ballastSize {
		b.released.Store(false)
		return nil
	}
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(allocate(f, ballastSize), f.Close()); err != nil {
		return errors.Join(err, os.Remove(b.path))
	}
	b.released.Store(false)
	return nil
}

// begins reports whether a commit starts work that will need more space later: a session, a turn,
// an effect, an event of a trigger, or copies of files.
func (c *Commit) begins() bool {
	if c.Create != nil || len(c.Triggers.Occurred)+len(c.Files.Copies) > 0 {
		return true
	}
	for _, t := range c.Turns {
		if t.State == protocol.TurnQueued {
			return true
		}
	}
	for _, e := range c.Effects {
		if !e.Finished {
			return true
		}
	}
	return false
}

// writeZeros fills a file with size zero bytes and syncs it. File systems with compression may
// still not reserve the space.
func writeZeros(f *os.File, size int64) error {
	chunk := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(chunk)) {
		if _, err := f.WriteAt(chunk[:min(int64(len(chunk)), size-at)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}
