//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"lashd/test/wait"
)

func TestSecondInterruptExitsAtOnce(t *testing.T) {
	p := newPlace(t)
	cmd, _, _ := p.start("run", "--allow", "sleep")
	wait.Until(t, "the command begins", func() bool { _, err := os.Stat(filepath.Join(p.work, "began")); return err == nil })
	syscall.Kill(p.holder(), syscall.SIGSTOP) // so that the first interrupt is not answered
	defer syscall.Kill(p.holder(), syscall.SIGCONT)
	left := make(chan error, 1)
	go func() { left <- cmd.Wait() }()
	wait.Until(t, "it leaves", func() bool {
		cmd.Process.Signal(os.Interrupt)
		return len(left) == 1
	})
}
