package rpc

import (
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// residentBytes returns the resident memory of the process, or 0 if it cannot be read.
func residentBytes() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// openFiles returns the number of open file descriptors of the process.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd") // unreadable counts as none
	return len(entries)
}

// fileLimit returns the maximum number of open files of the process.
func fileLimit() int64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int64(min(l.Cur, math.MaxInt64))
}
