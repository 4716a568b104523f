//go:build !linux

package proc

import (
	"fmt"
	"os/exec"
)

// Confines reports that this system offers no confinement.
func Confines() Support { return Support{Lacking: "lashd supports sandboxes only on Linux"} }

// Views returns an error: this system has no views.
func Views() error { return fmt.Errorf("%w: %s", ErrNoSandbox, Confines().Lacking) }

// gate does nothing on this system.
type gate struct{}

func (c Command) confined(*exec.Cmd) (*gate, error) {
	if c.Confine == nil {
		return nil, nil
	}
	return nil, c.Confine.demand(Confines())
}

func (*gate) pass() error { return nil }
func (*gate) close()      {}
