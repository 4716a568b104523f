//go:build !linux

package proc

import "os/exec"

// isolate does nothing: only Linux has mount namespaces.
func (*Sandbox) isolate(*exec.Cmd) {}

func refusesNamespaces(error) bool { return false }
