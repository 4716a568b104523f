//go:build unix

package proc

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipeHolds is how much a pipe has room for: a dead group has left no more.
const pipeHolds = 64 << 10

// giveUp has nobody wait any more for what may come through a pipe.
func giveUp(f *os.File) { f.SetReadDeadline(time.Now()) } // a pipe takes it

// givenUp tells whether an error says so.
func givenUp(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// rest carries what is in a pipe that is not waited for any more, and tells whether somebody holds the other end. The error is that of
// a Write.
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
