package cli

import (
	"fmt"

	"lashd/rpc/socket"
)

// checkLocal refuses a data directory on a network file system: the locks of a database cannot be relied on there.
func (e *environment) checkLocal() error {
	kind, err := socket.NetworkFilesystem(e.home)
	if err == nil && kind != "" {
		err = fmt.Errorf("the data directory %s is on a network file system (%s), where database locks are unreliable; "+
			"choose a local directory with --home or LASHD_HOME", e.home, kind)
	}
	return err
}
