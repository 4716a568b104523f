package workspace

import (
	"fmt"
	"os"
	"syscall"
)

// tellLock runs in the test binary as another process and reports whether the file is locked.
func tellLock(name string) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(lock.Type != syscall.F_UNLCK)
	os.Exit(0)
}
