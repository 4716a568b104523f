package worker

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lashd/engine/starlark"
)

// headroom is the memory that the runtime needs beside the heap: stacks, metadata, and an arena of 64 MiB that it maps
// at once.
const headroom = 192 << 20

// limitProcess sets the limit of the process's memory. It is the backstop behind the checks of the interpreter: the heap may
// reach its limit, and a single function may need as much again before the interpreter notices. The limit is that of addresses,
// relative to those that the runtime has reserved at start: the kernel does not apply RLIMIT_DATA to pages that were reserved
// before, as the Go runtime does with its heap.
func limitProcess(l starlark.Limits) error {
	used, err := addressSize()
	if err != nil {
		return err
	}
	return lower(unix.RLIMIT_AS, used+2*uint64(l.Memory)+headroom)
}

// lower sets a soft limit, within the hard one.
func lower(which int, n uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(which, &now); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	now.Cur = min(n, now.Max)
	return os.NewSyscallError("setrlimit", unix.Setrlimit(which, &now))
}

// addressSize returns the size of the process's address space, as of now.
func addressSize() (uint64, error) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(data), &pages); err != nil {
		return 0, fmt.Errorf("read /proc/self/statm: %w", err)
	}
	return pages * uint64(os.Getpagesize()), nil
}

// allowCPU bounds the processor time of the process until the end of the next cell: the kernel kills a process whose
// own clocks do not run. Collections can use several processors, so the bound is far above the active time.
func allowCPU(l starlark.Limits) {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return
	}
	limit := time.Duration(used.Utime.Nano()+used.Stime.Nano()) + 8*l.Time + 30*time.Second
	_ = lower(unix.RLIMIT_CPU, uint64(limit/time.Second)) // without it, the clocks of the process remain
}
