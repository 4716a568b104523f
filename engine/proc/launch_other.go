//go:build !linux

package proc

// launch starts c without a supervisor, which only Linux has.
func launch(c Command) (*child, error) { return c.spawn() }
