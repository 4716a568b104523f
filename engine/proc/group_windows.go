package proc

import (
	"fmt"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object. The system kills its processes when its last handle is closed, which is ours.
type group struct{ job, leader windows.Handle }

func detach(*exec.Cmd, bool) {}

// newGroup puts p into a job. Processes that p starts before newGroup returns are not in the job, because os/exec
// cannot start a process suspended.
func newGroup(p *os.Process) (group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}, fmt.Errorf("create job object: %w", err)
	}
	leader, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|windows.SYNCHRONIZE, false, uint32(p.Pid))
	if err != nil {
		windows.CloseHandle(job)
		return group{}, fmt.Errorf("open process: %w", err)
	}
	g := group{job: job, leader: leader}
	if err := g.enter(); err != nil {
		g.close()
		return group{}, err
	}
	return g, nil
}

func (g group) enter() error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err := windows.SetInformationJobObject(g.job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return fmt.Errorf("limit job object: %w", err)
	}
	if err := windows.AssignProcessToJobObject(g.job, g.leader); err != nil {
		return fmt.Errorf("assign process to job object: %w", err)
	}
	return nil
}

func (g group) awaitLeader() {
	windows.WaitForSingleObject(g.leader, windows.INFINITE) // it fails only for an invalid handle
}

// terminate kills at once: without a console there is no polite signal.
func (g group) terminate() { g.kill() }

// interrupt does nothing: without a console there is no such signal.
func (g group) interrupt() {}

// kill returns no error: there is nothing to end in an empty job.
func (g group) kill() { windows.TerminateJobObject(g.job, 1) }

func (g group) close() {
	windows.CloseHandle(g.leader)
	windows.CloseHandle(g.job)
}

func exitOf(state *os.ProcessState) Exit { return Exit{Code: state.ExitCode()} }
