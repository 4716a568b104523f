//go:build unix

package background

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// unblock lets reads and writes of a terminal be given up, which pty.Open leaves blocking.
func unblock(f *os.File) error {
	return control(f, func(fd int) error { return unix.SetNonblock(fd, true) })
}

// setSize is pty.Setsize, which would make the file blocking.
func setSize(f *os.File, columns, rows uint16) error {
	return control(f, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	})
}

func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	err = conn.Control(func(fd uintptr) { done = do(int(fd)) })
	return errors.Join(err, done)
}
