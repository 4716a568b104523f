package cli

import (
	"fmt"
	"slices"

	"lashd/engine/driver/rlm"
	"lashd/engine/driver/standard"
)

// driverNames returns the sorted names of the drivers of this build.
func (e *environment) driverNames() []string {
	names := []string{rlm.ID, standard.ID}
	for _, f := range e.extra.Drivers {
		names = append(names, f.ID())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// badDriver returns the problem of a config.toml that names an unknown driver. It is separate from readConfig because
// a custom build has more drivers.
func (e *environment) badDriver(data []byte, c config) []configProblem {
	names := e.driverNames()
	if c.Driver == "" || slices.Contains(names, c.Driver) {
		return nil
	}
	message := fmt.Sprintf("driver is %q; it must be %s%s", c.Driver, oneOf(names), didYouMean(c.Driver, names))
	return []configProblem{{Line: lineOf(data, []string{"driver"}, 0), Message: message}}
}
