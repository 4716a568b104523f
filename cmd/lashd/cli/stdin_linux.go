package cli

import (
	"fmt"
	"os"
	"syscall"
)

// pollable is a pipe, opened once more: a read of it waits in the runtime's poller, and Close ends it. One that waits in the
// system keeps a processor from the other goroutines until the scheduler notices, which on two processors was a tenth of a
// turn. The pipe of other processes stays as it is. Nil: it is no pipe, or may not be opened.
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
