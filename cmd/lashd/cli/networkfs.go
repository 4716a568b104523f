package cli

import (
	"fmt"

	"lashd/rpc/socket"
)

// checkLocal returns an error if the data directory is on a network file system,
// where database locks are unreliable.
func (e *environment) checkLocal() error {
	kind, err := socket.NetworkFilesystem(e.home)
	if err == nil && kind != "" {
		err = fmt.Errorf("the data directory %s is on a network file system (%s), where database locks are unreliable; "+
			"choose a local directory with --home or LASHD_HOME", e.home, kind)
	}
	return err
}
