package background

import (
	"context"
	"errors"

	"lashd/rpc/protocol"
)

// Detach is not there on Windows.
func (c *Commands) Detach(*protocol.Task, string) (string, error) { return "", errors.ErrUnsupported }

// Halt is not there on Windows.
func (c *Commands) Halt(context.Context, *protocol.Task) error { return errors.ErrUnsupported }

func locked(string) bool { return false }
