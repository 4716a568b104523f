package cli

import (
	"fmt"
	"os"
	"syscall"
)

// pollable opens the pipe f a second time in non-blocking mode. Reads of the
// result wait in the poller of the Go runtime, so that Close ends them and they do
// not block a processor in a system call. The mode of f itself, which other
// processes may share, does not change. pollable returns nil if f is not a pipe or
// cannot be opened.
func pollable(f *os.File) *os.File {
	if fi, err := f.Stat(); err != nil || fi.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	return again
}
