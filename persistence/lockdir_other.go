//go:build !unix

package persistence

import (
	"os"
	"time"
)

// abandonedAfter is how long a directory must be unchanged before lashd assumes that no process
// uses it.
const abandonedAfter = 24 * time.Hour

// lockDir cannot lock a directory on this system. It reports a recently changed directory as held.
func lockDir(path string) (unlock func() error, held bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, err
	}
	return func() error { return nil }, time.Since(info.ModTime()) < abandonedAfter, nil
}
