//go:build !linux

package proc

import "os/exec"

// isolate does nothing: only Linux has mount namespaces.
func isolate(*exec.Cmd) {}

func refusesNamespaces(error) bool { return false }
