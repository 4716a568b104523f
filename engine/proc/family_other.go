//go:build !linux

package proc

import "os/exec"

// AdoptOrphans does nothing here: only Linux gives orphans to an ancestor.
func AdoptOrphans() (stop func(), err error) { return func() {}, nil }

// Detached runs cmd, which leads a session of its own, to its end.
func Detached(cmd *exec.Cmd, nonce string) error {
	cmd.Env = append(cmd.Env, detachedVariable+"="+nonce)
	return cmd.Run()
}
