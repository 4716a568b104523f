package filepoint

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time that a file which is changed now gets at least. File systems take it from a clock that only ticks every few
// milliseconds, so that by the exact one a file could be older than a moment after which it was written.
func Now() time.Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return time.Now()
	}
	return time.Unix(ts.Unix())
}
