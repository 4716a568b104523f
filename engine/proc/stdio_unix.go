//go:build unix

package proc

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipeHolds is the capacity of a pipe: dead processes left at most that much.
const pipeHolds = 64 << 10

// stopReading ends the wait for more data from a pipe.
func stopReading(f *os.File) { f.SetReadDeadline(time.Now()) } // a pipe takes it

// stoppedReading reports whether err comes from stopReading.
func stoppedReading(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// rest copies what is left in a pipe after stopReading, and reports whether another process holds its other end. The error
// is that of a Write.
func rest(p pipe) (held bool, err error) {
	conn, err := p.from.SyscallConn()
	if err != nil {
		return true, nil
	}
	buf := make([]byte, pipeHolds)
	for left := pipeHolds; left > 0; {
		var n int
		var failed error
		if err := conn.Control(func(fd uintptr) { n, failed = unix.Read(int(fd), buf[:left]) }); err != nil {
			return true, nil
		}
		switch {
		case failed == unix.EINTR:
			continue
		case failed != nil: // it is empty
			return true, nil
		case n == 0:
			return false, nil
		}
		if _, err := p.to.Write(buf[:n]); err != nil {
			return true, err
		}
		left -= n
	}
	return true, nil
}
