package background

import (
	"context"
	"errors"

	"lashd/rpc/protocol"
)

// Detach returns errors.ErrUnsupported: there are no detached commands on Windows.
func (c *Commands) Detach(*protocol.Task, string) (string, error) { return "", errors.ErrUnsupported }

func halt(context.Context, int, string) error { return errors.ErrUnsupported }

func locked(string) bool { return false }
