package proc

import (
	"errors"
	"os"
)

// stopReading ends the wait for more data from a pipe. Pipes have no deadlines on Windows.
func stopReading(f *os.File) { f.Close() }

// stoppedReading reports whether err comes from stopReading.
func stoppedReading(err error) bool { return errors.Is(err, os.ErrClosed) }

// rest copies nothing, because stopReading has closed the pipe.
func rest(pipe) (held bool, err error) { return true, nil }
