//go:build !linux

package proc

import "os/exec"

// AdoptOrphans does nothing: only Linux has subreapers.
func AdoptOrphans() (stop func(), err error) { return func() {}, nil }

// Detached runs cmd, which must lead its own session, and waits for it.
func Detached(cmd *exec.Cmd, nonce string) error {
	cmd.Env = append(cmd.Env, detachedVariable+"="+nonce)
	return cmd.Run()
}
