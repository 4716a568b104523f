//go:build unix

package background

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// unblock makes a terminal non-blocking, which pty.Open does not. Only then do write
// deadlines work.
func unblock(f *os.File) error {
	return control(f, func(fd int) error { return unix.SetNonblock(fd, true) })
}

// setSize sets the size of a terminal. Unlike pty.Setsize it leaves the file non-blocking.
func setSize(f *os.File, columns, rows uint16) error {
	return control(f, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	})
}

// control calls do with the file descriptor of f, which stays open during the call.
func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	err = conn.Control(func(fd uintptr) { done = do(int(fd)) })
	return errors.Join(err, done)
}
