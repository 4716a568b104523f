//go:build unix

package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a process group. Its number is the leader's pid, so signal it only before the leader is reaped.
type group struct{ leader int }

func newGroup(p *os.Process) (group, error) { return group{leader: p.Pid}, nil }

func (g group) terminate() { g.signal(unix.SIGTERM) }
func (g group) interrupt() { g.signal(unix.SIGINT) }
func (g group) kill()      { g.signal(unix.SIGKILL) }

// signal returns no error: a group that is gone, or that belongs to another user now, cannot be ended.
func (g group) signal(s unix.Signal) { unix.Kill(-g.leader, s) }

// exitOf converts the state of a reaped process.
func exitOf(state *os.ProcessState) Exit {
	return exitFrom(state.Sys().(syscall.WaitStatus))
}

// exitFrom converts a wait status.
func exitFrom(status syscall.WaitStatus) Exit {
	exit := Exit{Code: status.ExitStatus()}
	if status.Signaled() {
		exit.Signal = unix.SignalName(status.Signal())
	}
	return exit
}
