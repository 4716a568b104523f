//go:build !linux

package filepoint

import "time"

// Now returns the earliest time stamp that a file changed from now on can get.
func Now() time.Time { return time.Now() }
