package filepoint

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the earliest time stamp that a file changed from now on can get. File systems
// use a coarse clock that ticks every few milliseconds, so time.Now may be later than the
// stamp of a later change.
func Now() time.Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return time.Now()
	}
	return time.Unix(ts.Unix())
}
