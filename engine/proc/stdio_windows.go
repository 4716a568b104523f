package proc

import (
	"errors"
	"os"
)

// giveUp has nobody wait any more for what may come through a pipe, which takes no deadline here.
func giveUp(f *os.File) { f.Close() }

// givenUp tells whether an error says so.
func givenUp(err error) bool { return errors.Is(err, os.ErrClosed) }

// rest is nothing of a pipe that is closed.
func rest(pipe) (held bool, err error) { return true, nil }
