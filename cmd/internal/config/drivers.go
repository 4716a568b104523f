package config

import (
	"fmt"
	"slices"
)

// badDriver returns the problem of a config.toml that names none of the given drivers. Without drivers, every name counts as known: only the
// daemon knows the drivers of a custom build.
func badDriver(data []byte, c Config, drivers []string) []Problem {
	if c.Driver == "" || len(drivers) == 0 || slices.Contains(drivers, c.Driver) {
		return nil
	}
	message := fmt.Sprintf("driver is %q; it must be %s%s", c.Driver, oneOf(drivers), DidYouMean(c.Driver, drivers))
	return []Problem{{Line: lineOf(data, []string{"driver"}, 0), Message: message}}
}
