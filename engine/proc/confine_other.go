//go:build !linux

package proc

import "os/exec"

// Confines says that nothing can be held to anything here.
func Confines() Support { return Support{Lacking: "only Linux has one that lashd knows"} }

// gate is nothing here.
type gate struct{}

func (c Command) confined(*exec.Cmd) (*gate, error) {
	if c.Confine == nil {
		return nil, nil
	}
	return nil, c.Confine.demand(Confines())
}

func (*gate) pass() error { return nil }
func (*gate) close()      {}
