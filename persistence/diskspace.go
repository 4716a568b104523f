package persistence

import (
	"errors"
	"os"
	"sync/atomic"

	"lashd/rpc/protocol"
)

// ballastSize is the space that is kept back for the day the disk is full.
const ballastSize = 16 << 20

// fullDisk is what is logged when it is given up.
const fullDisk = "the disk is full; lashd starts no new work until space is free"

// ballast is a file that is given up when the disk is full, so that turns which already run can be brought to an end and
// their results kept. While it is away nothing new is begun.
type ballast struct {
	path string
	away atomic.Bool
}

// giveUp frees the space, and tells whether that changed anything.
func (b *ballast) giveUp() bool {
	return !b.away.Swap(true) && os.Remove(b.path) == nil
}

// restore takes the space again. It fails while there is none.
func (b *ballast) restore() error {
	if fileSize(b.path) == ballastSize {
		b.away.Store(false)
		return nil
	}
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(allocate(f, ballastSize), f.Close()); err != nil {
		return errors.Join(err, os.Remove(b.path))
	}
	b.away.Store(false)
	return nil
}

// begins tells whether a commit starts something that will need more space later.
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

func writeZeros(f *os.File, size int64) error {
	chunk := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(chunk)) {
		if _, err := f.WriteAt(chunk[:min(int64(len(chunk)), size-at)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}
