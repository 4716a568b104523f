package cli

import (
	"fmt"

	"lashd/cmd/internal/daemon"
	"lashd/rpc/socket"
)

// checkLocal returns an error if the data directory is on a network file system,
// where database locks are unreliable.
func checkLocal(e *daemon.Environment) error {
	kind, err := socket.NetworkFilesystem(e.Home)
	if err == nil && kind != "" {
		err = fmt.Errorf("the data directory %s is on a network file system (%s), where database locks are unreliable; "+
			"choose a local directory with --home or LASHD_HOME", e.Home, kind)
	}
	return err
}
