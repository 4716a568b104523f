//go:build !linux

package proc

import "os/exec"

// isolate does nothing: only Linux has namespaces.
func (c Command) isolate(*exec.Cmd) {}

func refusesNamespaces(error) bool { return false }
